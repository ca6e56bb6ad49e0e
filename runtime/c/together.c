/* One region of threads, which take the pieces of all parts: those of the part whose heads take longest first, one thread a
 * piece. The last pieces, which are fewer than threads, are shared by teams, so that no thread is idle while one head
 * ends. */
#include "together.h"
#include "module.h"

#include <sched.h>
#include <string.h>

enum { ROUNDS = 2, LINE = 64 /* bytes of a cache line, and of a meeting */ };

/* Where threads wait for each other; emitted code waits there too. */
typedef struct meeting {
    int arrived, round;
} meeting;

/* One round's pieces of each part: `singles`, dealt out one a thread, then `rest`, each by a team. */
typedef struct deal {
    int64_t singles[MOST_PARTS], rest[MOST_PARTS];
    /* every thread is in the team of each of the rest, one after the other; else teams work at once */
    bool all;
} deal;

typedef struct call {
    const fpa_part *parts;
    int count, threads;
    int order[MOST_PARTS];
    struct fpa_share share[MOST_PARTS];
    size_t room; /* of a thread */
    char *meetings, *memory;
    deal rounds[ROUNDS];
    int64_t next[ROUNDS]; /* number of singles that were taken */
    meeting between;      /* all threads, between the rounds */
} call;

/* ---- who does what ---- */

static double work_of(const call *c, int place)
{
    return c->parts[c->order[place]].work;
}

static int64_t count_rest(const call *c, const deal *r)
{
    int64_t rest = 0;
    for (int i = 0; i < c->count; i++)
        rest += r->rest[i];
    return rest;
}

/* Threads in the team of rest number `index`, of `rest` that work at once: as many as its share of their work, by giving
 * one after the other to the team that would end last. */
static void find_teams(const call *c, const deal *r, int64_t rest, int *teams)
{
    double work[rest + 1];
    int most[rest + 1];
    int64_t at = 0;
    memset(work, 0, sizeof work);
    memset(most, 0, sizeof most);
    for (int i = 0; i < c->count; i++)
        for (int64_t j = 0; j < r->rest[c->order[i]]; j++, at++) {
            work[at] = work_of(c, i);
            most[at] = c->share[c->order[i]].most;
            teams[at] = 1;
        }
    for (int64_t left = c->threads - rest; left > 0; left--) {
        int64_t last = -1;
        for (int64_t k = 0; k < rest; k++)
            if (teams[k] < most[k] && (last < 0 || work[k] / teams[k] > work[last] / teams[last]))
                last = k;
        if (last < 0)
            return;
        teams[last]++;
    }
}

/* Pieces of the parts with the longest heads join the singles, until fewer are left than threads. */
static void shorten_rest(const call *c, deal *r)
{
    const int64_t rest = count_rest(c, r);
    int64_t moved = rest - rest % c->threads;
    for (int i = 0; i < c->count && moved > 0; i++) {
        int64_t *from = &r->rest[c->order[i]], some = *from < moved ? *from : moved;
        r->singles[c->order[i]] += some;
        *from -= some;
        moved -= some;
    }
}

/* Whether the rest ends sooner when all threads share each of its pieces. One that is shared takes a quarter longer than its
 * part of the work, for the threads wait for each other. */
static bool shares_all(const call *c, const deal *r)
{
    double sum = 0, longest = 0;
    int64_t singles = count_rest(c, r) / c->threads * c->threads;
    for (int i = 0; i < c->count; i++) {
        const int64_t rest = r->rest[c->order[i]];
        if (rest && c->share[c->order[i]].most < c->threads)
            return false;
        if (rest && singles > 0)
            longest = longest > work_of(c, i) ? longest : work_of(c, i);
        sum += (double)rest * work_of(c, i);
        singles -= rest;
    }
    return 1.25 * sum / c->threads < longest;
}

/* Whole rounds of one thread a piece; what is left of each part is the rest, where it may be shared. */
static void plan_round(call *c, int number)
{
    deal *r = &c->rounds[number];
    *r = (deal){.all = false};
    for (int i = 0; i < c->count; i++) {
        const struct fpa_share *s = &c->share[i];
        const bool shared =
            c->threads > 1 && s->most > 1 && (c->parts[i].form != FORM_PARALLEL || number > 0);
        r->rest[i] = shared ? s->pieces[number] % c->threads : 0;
        r->singles[i] = s->pieces[number] - r->rest[i];
    }
    r->all = shares_all(c, r);
    if (!r->all)
        shorten_rest(c, r);
}

/* ---- what a thread does ---- */

/* A short while by looking, then by giving the processor away, as emitted code does. */
static void meet(meeting *m, int threads)
{
    const int round = __atomic_load_n(&m->round, __ATOMIC_ACQUIRE);
    if (threads == 1)
        return;
    if (__atomic_add_fetch(&m->arrived, 1, __ATOMIC_ACQ_REL) == threads) {
        m->arrived = 0;
        __atomic_store_n(&m->round, round + 1, __ATOMIC_RELEASE);
        return;
    }
    for (int looks = 0; __atomic_load_n(&m->round, __ATOMIC_ACQUIRE) == round; looks++)
        if (looks > 4000)
            sched_yield();
}

/* Piece `index` of a part in a round. */
static void do_piece(const call *c, int part, int number, int64_t index, struct fpa_member *member)
{
    const fpa_part *p = &c->parts[part];
    const int64_t before = number > 0 ? c->share[part].pieces[0] : 0;
    module_pieces(p->module)->piece(p->form, &p->launch, before + index, member);
}

static struct fpa_member member_of(const call *c, int thread, int first, int team)
{
    return (struct fpa_member){.rank = thread - first,
                               .team = team,
                               .mine = c->memory + (size_t)thread * c->room,
                               .shared = c->memory + (size_t)first * c->room,
                               .meeting = c->meetings + (size_t)first * LINE};
}

/* counts: of each part's pieces, that are dealt out. */
static void do_singles(call *c, int number, const int64_t *counts, int thread)
{
    struct fpa_member alone = member_of(c, thread, thread, 1);
    int place = 0;
    int64_t before = 0; /* pieces of the parts before it */
    for (;;) {
        const int64_t taken = __atomic_fetch_add(&c->next[number], 1, __ATOMIC_RELAXED);
        while (place < c->count && taken - before >= counts[c->order[place]])
            before += counts[c->order[place++]];
        if (place == c->count)
            return;
        do_piece(c, c->order[place], number, taken - before, &alone);
    }
}

/* The team's memory is what its threads have used alone: they wait for the last of them. */
static void do_shared(const call *c, int part, int number, int64_t index, struct fpa_member *member)
{
    meet(member->meeting, member->team);
    do_piece(c, part, number, c->rounds[number].singles[part] + index, member);
}

static void do_rest(const call *c, int number, int thread)
{
    const deal *r = &c->rounds[number];
    const int64_t rest = count_rest(c, r);
    int teams[rest + 1], first = 0;
    int64_t at = 0;
    memset(teams, 0, sizeof teams);
    if (rest && !r->all)
        find_teams(c, r, rest, teams);
    for (int i = 0; i < c->count; i++)
        for (int64_t j = 0; j < r->rest[c->order[i]]; j++, at++) {
            const int team = r->all ? c->threads : teams[at];
            struct fpa_member member = member_of(c, thread, first, team);
            if (member.rank >= 0 && member.rank < team)
                do_shared(c, c->order[i], number, j, &member);
            first += r->all ? 0 : team;
        }
}

/* Fewer threads than were planned for take all pieces one by one. */
static void do_round(call *c, int number, int thread, int threads)
{
    int64_t pieces[MOST_PARTS];
    for (int i = 0; i < c->count; i++)
        pieces[i] = c->share[i].pieces[number];
    if (threads != c->threads) {
        do_singles(c, number, pieces, thread);
        return;
    }
    do_singles(c, number, c->rounds[number].singles, thread);
    do_rest(c, number, thread);
}

static void work(void *user, int thread, int threads)
{
    call *c = user;
    bool more = false;
    for (int i = 0; i < c->count; i++)
        more = more || c->share[i].pieces[1];
    do_round(c, 0, thread, threads);
    if (!more)
        return;
    meet(&c->between, threads);
    do_round(c, 1, thread, threads);
}

/* ---- the call ---- */

static size_t bytes_of(const call *c, int threads)
{
    return (size_t)threads * (LINE + c->room);
}

static void look(call *c, const fpa_part *parts, int count)
{
    c->parts = parts;
    c->count = count;
    c->threads = 1;
    for (int i = 0; i < count; i++) {
        module_pieces(parts[i].module)->share(parts[i].form, &parts[i].launch, &c->share[i]);
        c->threads = c->share[0].threads;
        c->room = c->room > c->share[i].room ? c->room : c->share[i].room;
    }
}

static size_t workspace_of(const fpa_part *parts, int count)
{
    call c = {.room = 0};
    look(&c, parts, count);
    return count ? bytes_of(&c, c.threads) : 0;
}

static fpa_status forward(void *handle, fpa_part *parts, int count, void *workspace, size_t size,
                          void *stream, fpa_error *error)
{
    call c = {.room = 0};
    double part_work[MOST_PARTS];
    (void)handle, (void)stream;
    if (!count)
        return FPA_OK;
    look(&c, parts, count);
    while (c.threads > 1 && bytes_of(&c, c.threads) > size)
        c.threads--;
    if (bytes_of(&c, c.threads) > size)
        return fail(error, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu", size,
                    bytes_of(&c, c.threads));
    c.meetings = workspace;
    c.memory = c.meetings + (size_t)c.threads * LINE;
    memset(c.meetings, 0, (size_t)c.threads * LINE);
    for (int i = 0; i < count; i++)
        part_work[i] = parts[i].work;
    together_order(part_work, count, c.order);
    for (int i = 0; i < ROUNDS; i++)
        plan_round(&c, i);
    module_pieces(parts[0].module)->together(c.threads, work, &c);
    return FPA_OK;
}

static fpa_status open_parts(const fpa_module *const *modules, int count, void **handle, fpa_error *error)
{
    *handle = NULL;
    for (int i = 0; i < count; i++)
        if (!module_pieces(modules[i])->piece)
            return fail(
                error, FPA_LOAD, "layer",
                "a module of it was generated by a version of fpac without layers: generate it again");
    return FPA_OK;
}

static void close_parts(void *handle)
{
    (void)handle; /* nothing was made */
}

const fpa_together together_c = {
    .open = open_parts,
    .close = close_parts,
    .workspace = workspace_of,
    .forward = forward,
};
