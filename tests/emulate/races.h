/* races: which accesses to shared memory are ordered, whatever turns threads take; a part of emulate.h.
 *
 * A thread's moment is how often its warp has met and, since then, how often it has arrived somewhere by itself. Each warp knows of each thread
 * of the cluster up to which moment all that it did comes before: it hears that from its own meetings, and from barriers, which are told by who
 * arrives. Two accesses to a word, one of which writes, are a race where neither comes before the other: also where the one lane that arrives
 * for a warp has not met the others since. A warp's meeting is any instruction that all of its lanes take together. What the copy engine
 * writes comes before the end of the phase that waits for its bytes. Not looked at: what is accessed by pointers (items of a block), variables
 * that are __shared__, and memory of the device. */
#ifndef FPAC_TESTS_EMULATE_RACES_H
#define FPAC_TESTS_EMULATE_RACES_H

#ifdef EMULATE_RUNTIME
#include <memory>

namespace emulate
{

enum { WORDS = SHARED / 4, ARRIVALS = 255 /* of a moment, at most */ };

typedef u64 moment;
typedef std::vector<moment> moments; /* of all threads of the cluster */
typedef std::shared_ptr<const moments> news;

/* A barrier: what those who arrived knew, by how many meetings of each warp that is up to date, and what they knew when the last phase ended. */
struct teller {
    moments all;
    std::vector<u64> meetings;
    std::vector<news> joined; /* in this phase */
    news told;
};

struct warp_clock {
    moments knows;
    u64 meetings;
};

struct thread_clock {
    unsigned arrivals;       /* since the warp met */
    std::vector<news> heard; /* since then, too */
};

/* Who wrote each half of a word last: number + 1, or 0. mixed: and what others wrote at the same time; nobody may read it then. */
struct last_write {
    u32 who[2];
    moment when[2];
    bool mixed[2];
};

/* Lanes of a warp that have read a word since, in its last meeting but so many in which any did. */
struct last_reads {
    u64 meeting;
    u32 lanes;
    unsigned char arrivals[WARP];
};

static struct block_races {
    last_write writes[WORDS];
    u32 readers[WORDS]; /* warps, a bit each */
    last_reads reads[MOST_THREADS / WARP][WORDS];
} * races; /* [MOST_BLOCKS] */

static std::vector<warp_clock> warp_clocks;     /* of the cluster */
static std::vector<thread_clock> thread_clocks; /* likewise */
static std::map<u32, teller> tellers[MOST_BLOCKS];
static bool looking; /* for races: FPA_TEST_RACES */
static int acting;   /* block whose thread runs, also where it visits another one */

} // namespace emulate
#endif

namespace emulate
{

/* A thread of this block runs. */
RUNTIME void begin_acting(void)
{
    acting = rank;
}

/* Number in the cluster of the thread that runs. */
RUNTIME int self(void)
{
    return acting * count + current;
}

RUNTIME u64 moment_of(int thread)
{
    return !looking ? 0 : warp_clocks[thread / WARP].meetings << 8 | thread_clocks[thread].arrivals;
}

/* Nothing has been done yet in the cluster's blocks. */
RUNTIME void start_races(void)
{
    looking = getenv("FPA_TEST_RACES") != NULL;
    if (!looking)
        return;
    const size_t size = MOST_BLOCKS * sizeof *races;
    if (!races)
        races = (block_races *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    warp_clocks.assign(ranks * count / WARP, {moments(ranks * count, 0), 1});
    thread_clocks.assign(ranks * count, {});
    for (int i = 0; i < ranks; i++) {
        tellers[i].clear();
        memset(races[i].writes, 0, (memory_bytes + 3) / 4 * sizeof *races[i].writes);
        memset(races[i].readers, 0, (memory_bytes + 3) / 4 * sizeof *races[i].readers);
    }
}

RUNTIME bool join(std::vector<u64> &to, const std::vector<u64> &from)
{
    for (size_t i = 0; i < from.size(); i++)
        to[i] = to[i] > from[i] ? to[i] : from[i];
    return true;
}

/* All lanes of a warp of the block that runs are at one place. */
RUNTIME void warp_has_met(int warp)
{
    if (!looking)
        return;
    const int number = rank * count / WARP + warp;
    warp_clock &own = warp_clocks[number];
    const void *last = NULL; /* lanes have mostly heard the same */
    for (int i = number * WARP; i < (number + 1) * WARP; i++) {
        for (const news &n : thread_clocks[i].heard)
            if (n.get() != last && join(own.knows, *n))
                last = n.get();
        own.knows[i] = moment_of(i);
        thread_clocks[i].heard.clear();
    }
    for (int i = number * WARP; i < (number + 1) * WARP; i++)
        thread_clocks[i].arrivals = 0;
    own.meetings++;
}

/* A barrier of the block that it is in hears what the thread that runs knows. */
RUNTIME void tell_news(u32 address)
{
    if (!looking)
        return;
    teller &t = tellers[rank][address];
    const int own = self();
    const warp_clock &warp = warp_clocks[own / WARP];
    if (t.all.empty())
        t.all.assign(ranks * count, 0), t.meetings.assign(ranks * count / WARP, 0);
    if (t.meetings[own / WARP] != warp.meetings)
        join(t.all, warp.knows), t.meetings[own / WARP] = warp.meetings;
    for (const news &n : thread_clocks[own].heard)
        if (std::find(t.joined.begin(), t.joined.end(), n) == t.joined.end())
            join(t.all, *n), t.joined.push_back(n);
    t.all[own] = std::max(t.all[own], moment_of(own));
}

/* The thread arrives there: what it does behind that is of another moment. */
RUNTIME void tell(u32 address)
{
    if (!looking)
        return;
    tell_news(address);
    if (thread_clocks[self()].arrivals < ARRIVALS)
        thread_clocks[self()].arrivals++;
}

/* A copy of a thread's is there, of which the barrier hears. */
RUNTIME void tell_copied(u32 address, int who, u64 when)
{
    if (!looking)
        return;
    teller &t = tellers[rank][address];
    if (t.all.empty())
        t.all.assign(ranks * count, 0), t.meetings.assign(ranks * count / WARP, 0);
    t.all[who] = std::max(t.all[who], when);
}

RUNTIME void end_told(u32 address)
{
    if (!looking)
        return;
    teller &t = tellers[rank][address];
    t.told = std::make_shared<const moments>(t.all);
    t.joined.clear();
}

/* The thread that runs has waited for the end of a phase. */
RUNTIME void hear(u32 address)
{
    if (!looking)
        return;
    const news &told = tellers[rank][address].told;
    std::vector<news> &heard = thread_clocks[self()].heard;
    if (told && (heard.empty() || heard.back() != told))
        heard.push_back(told);
}

/* The barrier of the cluster. */
enum { CLUSTER_BARRIER = NAMED_BARRIERS };

RUNTIME void tell_cluster(void)
{
    const int mine = rank;
    rank = 0;
    tell(CLUSTER_BARRIER);
    rank = mine;
}

RUNTIME void end_cluster_told(void)
{
    const int mine = rank;
    rank = 0;
    if (!tellers[0][CLUSTER_BARRIER].all.empty())
        end_told(CLUSTER_BARRIER);
    rank = mine;
}

RUNTIME void hear_cluster(void)
{
    const int mine = rank;
    rank = 0;
    hear(CLUSTER_BARRIER);
    rank = mine;
}

/* Whether what a thread did at a moment comes before what another one does now. */
RUNTIME bool comes_before(int thread, u64 when, int other)
{
    if (thread == other || warp_clocks[other / WARP].knows[thread] >= when)
        return true;
    for (const news &n : thread_clocks[other].heard)
        if (thread < (int)n->size() && (*n)[thread] >= when)
            return true;
    return false;
}

[[noreturn]] RUNTIME void stop_at_race(u32 word, int who, const char *does, int other, const char *has)
{
    const int mine = rank;
    enter(acting);
    stop("a race: address %u of block %d, which thread %d of block %d %s, thread %d of block %d has %s "
         "before, and nothing orders them",
         BASE + word * 4, mine, who % count, who / count, does, other % count, other / count, has);
}

/* Whether what has been written to half of a word comes before what a thread does. */
RUNTIME bool is_written(u32 word, int half, int who)
{
    const last_write &w = races[rank].writes[word];
    return !w.who[half] || comes_before(w.who[half] - 1, w.when[half], who);
}

/* Halves of a word that some bytes from an address on have. */
RUNTIME u32 halves_of(u32 address, u32 bytes)
{
    return bytes >= 4 ? 3 : 1u << (address >> 1 & 1);
}

/* Thread `who` of the cluster reads memory of the block that runs. */
RUNTIME void note_read_by(int who, u32 address, u32 bytes)
{
    if (!looking)
        return;
    const int warp = who % count / WARP;
    const u64 meeting = warp_clocks[who / WARP].meetings;
    const u32 halves = halves_of(address, bytes);
    for (u32 word = (address - BASE) / 4; word <= (address - BASE + bytes - 1) / 4; word++) {
        for (int half = 0; half < 2; half++)
            if (halves >> half & 1 && (races[rank].writes[word].mixed[half] || !is_written(word, half, who)))
                stop_at_race(word, who, "reads", races[rank].writes[word].who[half] - 1, "written");
        last_reads &r = races[rank].reads[warp][word];
        u32 &readers = races[rank].readers[word];
        if (!(readers >> warp & 1) || r.meeting != meeting)
            r.lanes = 0;
        readers |= 1u << warp;
        r.meeting = meeting;
        r.lanes |= 1u << who % WARP;
        r.arrivals[who % WARP] = (unsigned char)thread_clocks[who].arrivals;
    }
}

RUNTIME void note_read(u32 address, u32 bytes)
{
    note_read_by(self(), address, bytes);
}

RUNTIME void look_at_reads(u32 word, int who, const char *does)
{
    u32 &readers = races[rank].readers[word];
    for (; readers; readers &= readers - 1) {
        const int warp = __builtin_ctz(readers);
        const last_reads &r = races[rank].reads[warp][word];
        for (u32 lanes = r.lanes; lanes; lanes &= lanes - 1) {
            const int lane = __builtin_ctz(lanes), other = rank * count + warp * WARP + lane;
            if (!comes_before(other, r.meeting << 8 | r.arrivals[lane], who))
                stop_at_race(word, who, does, other, "read");
        }
    }
}

/* The thread that runs writes there, or begins to copy. */
RUNTIME void note_store(u32 address, u32 bytes, const char *does, bool same)
{
    if (!looking)
        return;
    const int who = self();
    const u64 now = moment_of(who);
    const u32 halves = halves_of(address, bytes);
    for (u32 word = (address - BASE) / 4; word <= (address - BASE + bytes - 1) / 4; word++) {
        last_write &w = races[rank].writes[word];
        look_at_reads(word, who, does);
        for (int half = 0; half < 2; half++) {
            if (!(halves >> half & 1))
                continue;
            w.mixed[half] = (same && w.mixed[half]) || (!same && !is_written(word, half, who));
            w.who[half] = who + 1, w.when[half] = now;
        }
    }
}

} // namespace emulate

#endif
