/* Launches all parts in one parallel region, whose threads process the pieces of all parts: first those of the
 * part whose heads take longest, one thread for each piece. The last pieces, fewer than threads, are shared by
 * teams, so that no thread is idle while one head is finished. */
#include "together.h"
#include "module.h"

#include <sched.h>
#include <string.h>

enum { ROUNDS = 2, LINE = 64 /* bytes of a cache line, and of a barrier (meeting) */ };

/* A barrier of threads, which emitted code uses, too. */
typedef struct meeting {
    int arrived, round;
} meeting;

/* The pieces of each part in one round: `singles` are processed by one thread each, then `rest` by teams. */
typedef struct deal {
    int64_t singles[MOST_PARTS], rest[MOST_PARTS];
    /* true: all threads process the pieces of the rest together, one after the other; false: several teams work at
     * the same time */
    bool all;
} deal;

typedef struct call {
    const fpa_part *parts;
    int count, threads;
    int order[MOST_PARTS];
    struct fpa_share share[MOST_PARTS];
    size_t room; /* bytes of workspace of a thread */
    char *meetings, *memory;
    deal rounds[ROUNDS];
    int64_t next[ROUNDS]; /* singles that threads have taken */
    meeting between;      /* barrier of all threads, between the rounds */
} call;

/* ---- distribution of the pieces ---- */

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

/* The number of threads in each of `rest` teams that work at the same time, in proportion to the pieces' work:
 * threads are given one by one to the team that would finish last. */
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

/* Makes pieces of the rest singles, those of the parts with the longest heads first, until fewer remain than
 * threads. */
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

/* Whether the rest is finished sooner if all threads share each of its pieces. A shared piece takes a quarter
 * longer than its part of the work, since threads wait for each other. */
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

/* Distributes the pieces of a round: as many as fill whole rounds of one piece per thread are singles; the
 * remaining pieces of each part are the rest, if they can be shared. */
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

/* ---- work of a thread ---- */

/* Waits for all threads: first by polling, then by yielding the processor, as emitted code does. */
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

/* Processes piece `index` of a part in a round. */
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

/* Processes singles until none is left. counts: number of singles of each part. */
static void do_singles(call *c, int number, const int64_t *counts, int thread)
{
    struct fpa_member alone = member_of(c, thread, thread, 1);
    int place = 0;
    int64_t before = 0; /* singles of earlier parts */
    for (;;) {
        const int64_t taken = __atomic_fetch_add(&c->next[number], 1, __ATOMIC_RELAXED);
        while (place < c->count && taken - before >= counts[c->order[place]])
            before += counts[c->order[place++]];
        if (place == c->count)
            return;
        do_piece(c, c->order[place], number, taken - before, &alone);
    }
}

/* Processes a piece with a team. The team's workspace is that of its threads, so all wait until the others have
 * finished their singles. */
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

/* Processes a round. If there are fewer threads than planned, they process all pieces as singles. */
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
    (void)handle; /* open has made nothing */
}

const fpa_together together_c = {
    .open = open_parts,
    .close = close_parts,
    .workspace = workspace_of,
    .forward = forward,
};
