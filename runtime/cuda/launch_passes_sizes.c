/* launch_passes_sizes: which gradients passes compute, which operands are gathered, and how calls are divided to fit the workspace. */
#include "launch_passes_sizes.h"

#include "base/round.h"
#include "head/form.h"
#include "launch_contraction.h"
#include "launch_passes.h"
#include "launch_maps.h"
#include "launch_reversed.h"

enum {
    ALIGNMENT = 256,
    ELEMENT = 2,
    NO_STATE =
        64 /* a panel's tokens: no state is read, and scores as sums over rows need fewer products than over features */
};

bool cuda_takes_passes(const fpa_module *module, int form, const struct fpa_backward_launch *launch)
{
    const struct fpa_launch *f = &launch->forward;
    const struct fpa_cuda_module *cuda = module->handle;
    /* with grouped query heads passes would read copies of their operands, NAME_backward_keys reads them as given */
    if (cuda->geometry.backward_both && f->query_heads != f->heads)
        return false;
    if (cuda->geometry.pass_parallel && form != FORM_PARALLEL)
        return false;
    if (cuda->geometry.pass_features && f->length <= NO_STATE)
        return false;
    if (launch->d_weights && f->batch * f->length * f->query_heads == 0) /* they are zero */
        return false;
    return (module->passes[PASS_ROWS] || cuda_contracts(module->passes[PASS_VALUES])) && !f->cu_seqlens &&
           !f->state_in && !launch->d_state_out && !launch->d_state_in;
}

/* ---- which operands are gathered, and which are read as given ---- */

bool pass_parts_are_given(const passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    return g->pass_parts == 1 || g->pass_parts * g->pass_part == p->dv;
}

bool pass_describes(const passes *p, const void *base, const int64_t stride[3])
{
    const struct fpa_launch *f = &p->launch->forward;
    const long long its[3] = {stride[0], stride[1], stride[2]};
    return cuda_can_describe(base, its, f->heads, f->length, f->batch);
}

static bool describes_values(const passes *p)
{
    const struct fpa_backward_launch *a = p->launch;
    return pass_describes(p, a->forward.v, a->forward.v_stride) && pass_describes(p, a->d_o, a->d_o_stride);
}

bool pass_can_give_values(const passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    return p->turns && g->pass_formed && !p->back.outputs && !g->pass_widened && p->group == 1 &&
           !g->backward_padded_value && describes_values(p);
}

int pass_row_width(const passes *p, pass_gathered gathered)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int width[] = {[GATHERS_ALL] = g->pass_width + g->pass_kept,
                         [GATHERS_VECTORS] = g->pass_values + g->pass_kept,
                         [GATHERS_NOTHING] = 0};
    return width[gathered];
}

/* Whether the copy engine can fetch vectors: q and k as given, or made rows, which are contiguous in the workspace. */
static bool describes_vectors(const passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t width = p->cuda->geometry.made_width, head = f->length * width;
    const int64_t stride[3] = {f->heads * head, width, head};
    const void *some = (void *)(uintptr_t)ALIGNMENT;
    return width ? pass_describes(p, some, stride)
                 : pass_describes(p, f->q, f->q_stride) && pass_describes(p, f->k, f->k_stride);
}

pass_gathered pass_least_gathered(const passes *p, bool lie)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    if (!p->contracts || g->kernel[CUDA_BACKWARD_OUTPUTS].threads || (g->gate && g->pass_formed) ||
        g->pass_weighted || g->pass_widened || p->group != 1 || g->backward_padded_value ||
        (lie && !describes_values(p)))
        return GATHERS_ALL;
    if (g->pass_formed)
        return g->pass_kept ? GATHERS_VECTORS : GATHERS_ALL;
    return p->d % 8 == 0 && pass_parts_are_given(p) && (!lie || describes_vectors(p)) ? GATHERS_NOTHING
                                                                                      : GATHERS_ALL;
}

/* ---- sizes ---- */

static size_t aligned(int64_t count, size_t size)
{
    return round_up(count * (int64_t)size, ALIGNMENT);
}

passes_piece passes_piece_at(const passes *p, int64_t first)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t heads = f->query_heads;
    if (p->at_once >= heads) {
        const int64_t left = f->batch - first / heads, most = p->at_once / heads;
        return (passes_piece){first, left < most ? left : most, heads};
    }
    const int64_t left = heads - first % heads;
    return (passes_piece){first, 1, left < p->at_once ? left : p->at_once};
}

bool passes_want(const passes *p, fpa_pass pass)
{
    const struct fpa_backward_launch *a = p->launch;
    const bool own = pass == PASS_ROWS ? a->d_q || a->d_k : a->d_v != NULL;
    return own || (a->d_log_gate && p->dots == pass);
}

/* Whether kernels of that pass run; contractions belong to the pass of values. */
static bool runs(const passes *p, fpa_pass pass)
{
    return p->contracts ? pass == PASS_VALUES : passes_want(p, pass);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

bool passes_find(const passes *p, fpa_pass pass, const struct fpa_launch *launch, fpa_candidate *found)
{
    const struct fpa_cuda_module *cuda = p->module->passes[pass]->handle;
    const fpa_call_size size = {.form = FORM_CHUNKED,
                                .batch = launch->batch,
                                .length = launch->length,
                                .query_heads = launch->query_heads,
                                .heads = launch->heads};
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const bool only = p->keeps && (pass == p->dots || g->pass_numbers);
    return (only || (pass == PASS_ROWS && g->pass_parts > 1)) &&
           cuda_fastest_fused(&cuda->geometry, &cuda->room, &size, found);
}

/* Bytes of the workspace of a pass over `length` tokens of each sequence. */
static size_t pass_bytes(const passes *p, fpa_pass pass, passes_piece these, int64_t length)
{
    const fpa_module *module = p->module->passes[pass];
    const struct fpa_launch sizes = {
        .batch = these.batch, .length = length, .query_heads = these.heads, .heads = these.heads};
    fpa_candidate found;
    const bool only = passes_find(p, pass, &sizes, &found);
    const size_t bytes =
        module->workspace(module, only ? FORM_CHUNKED : p->form, &sizes, only ? &found : NULL);
    return aligned((int64_t)larger(bytes, only ? 0 : cuda_reversed_workspace(module, &sizes)), 1);
}

/* Bytes of the workspace that forward and reversed passes use in turn. */
static size_t forward_bytes(const passes *p, passes_piece these)
{
    const int64_t length = p->launch->forward.length;
    size_t most = 0;
    for (int i = 0; i < PASSES; i++)
        if (runs(p, (fpa_pass)i))
            most = larger(most, larger(pass_bytes(p, (fpa_pass)i, these, length),
                                       pass_bytes(p, (fpa_pass)i, these, p->reached)));
    if (p->contracts)
        most = larger(most, pass_bytes(p, PASS_VALUES, these, round_up(p->reached, CUDA_TURNED)));
    return most;
}

/* The last piece, which may have fewer sequences, and so be divided into more segments. */
static passes_piece last_piece(const passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    const passes_piece whole = passes_piece_at(p, 0);
    const int64_t period = p->at_once >= f->query_heads ? f->batch * f->query_heads : f->query_heads;
    const int64_t each = whole.batch * whole.heads;
    return passes_piece_at(p, (period - 1) / each * each);
}

/* Dot products for each token: one for each block of columns, or, of a contraction, one for each set of monomials. */
int64_t pass_dot_blocks(const passes *p)
{
    const struct fpa_cuda_module *cuda = p->module->passes[p->dots]->handle;
    const int parts = p->dots == PASS_ROWS ? p->cuda->geometry.pass_parts : 1;
    return p->contracts ? cuda->geometry.contraction_dots : parts * cuda->geometry.column_blocks;
}

bool pass_outputs_read(const passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    return g->gate && g->pass_beside;
}

/* Counts bytes for gradients of log-gates: the pass that computes dot products with its outputs keeps its states until those of the
 * reversed pass are stored; both store dot products for each token, and state_product the products of states. */
static size_t count_gates(passes *p, passes_piece whole)
{
    const struct fpa_cuda_geometry *g =
        &((struct fpa_cuda_module *)p->module->passes[p->dots]->handle)->geometry;
    const int64_t length = p->launch->forward.length, sequences = whole.batch * whole.heads;
    const int64_t blocks = pass_dot_blocks(p);
    if (!p->launch->d_log_gate)
        return 0;
    p->room.reads = p->keeps ? 0
                             : larger(pass_bytes(p, p->dots, whole, length),
                                      pass_bytes(p, p->dots, last_piece(p), length));
    p->room.kept =
        p->keeps && p->chunks > 1
            ? aligned(p->cuda->geometry.pass_parts * sequences * p->chunks * g->fused_kept, ELEMENT)
            : 0;
    /* one launch for all sequences */
    const int64_t all = p->launch->forward.batch * p->launch->forward.query_heads;
    p->room.read_dots = aligned((pass_outputs_read(p) ? all : blocks * sequences) * length, sizeof(float));
    p->room.given_dots =
        aligned(blocks * sequences * (int64_t)round_up(p->reached, CUDA_TURNED), sizeof(float));
    p->room.products = p->chunks > 1 ? aligned(sequences * p->chunks, sizeof(double)) : 0;
    return p->room.reads + p->room.read_dots + p->room.given_dots + p->room.products + 2 * p->room.kept;
}

/* Whether nothing is gathered, since the kernels of all passes can read these sequences' operands as given, in both orders of tokens.
 * Only linear heads that neither divide nor weight. */
static bool takes_given(const passes *p, passes_piece these)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_launch sizes = {.batch = these.batch,
                                     .length = p->launch->forward.length,
                                     .query_heads = these.heads,
                                     .heads = these.heads};
    bool all = p->form == FORM_CHUNKED && !g->pass_widened && g->pass_line && !g->pass_weighted &&
               pass_parts_are_given(p) && p->group == 1 &&
               (g->pass_numbers || !g->kernel[CUDA_BACKWARD_OUTPUTS].threads);
    for (int i = 0; i < PASSES && all; i++)
        all = !passes_want(p, (fpa_pass)i) || cuda_reverses_any(p->module->passes[i], &sizes);
    return all;
}

/* Whether some pass stores a result that is not one of the call's gradients as given. given: no operand is gathered. */
static bool has_results(const passes *p, bool given)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_backward_launch *a = p->launch;
    if (p->gathers == GATHERS_NOTHING) /* the contraction for d_v also computes d_k */
        return !a->d_k || (a->d_log_gate && !a->d_q);
    return given ? a->d_log_gate && !(a->d_q && a->d_k)
                 : a->d_k || a->d_v || a->d_log_gate || (a->d_q && (g->pass_formed || g->pass_widened));
}

/* Counts bytes of gathered rows, and of a pass's result that is scattered, or that no gradient of the call takes. */
static void count_rows(passes *p, passes_piece whole)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const int64_t tokens = whole.batch * whole.heads * p->reached;
    const bool given = takes_given(p, whole) && takes_given(p, last_piece(p));
    const bool results = has_results(p, given);
    p->room.rows = given ? 0 : aligned(tokens * pass_row_width(p, p->gathers), ELEMENT);
    p->room.gates = !given && g->gate ? aligned(tokens, sizeof(float)) : 0;
    p->room.result = results ? aligned(tokens * round_up(p->d > p->dv ? p->d : p->dv, 8), ELEMENT) : 0;
}

/* Counts bytes of made rows of the sequences in flight; returns the bytes of their other arrays: matrices, parts of the matrices'
 * gradients, features. */
static size_t count_made(passes *p, passes_piece whole)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t keys = whole.batch * whole.heads / p->group;
    if (!g->made_width)
        return 0;
    p->room.operands = aligned(made_operand_bytes(g, f), 1);
    p->room.made = aligned(keys * made_sequence_bytes(g, f), 1);
    p->room.parts = p->made.matrices ? aligned(keys * made_part_entries(g, f), sizeof(float)) : 0;
    p->room.sums = p->made.matrices ? aligned(f->batch * f->heads * g->backward_entries, sizeof(float)) : 0;
    p->room.lift_kept = p->made.matrices ? aligned(keys * made_kept_bytes(g, f), 1) : 0;
    p->room.features = aligned(keys * made_feature_bytes(g, f), 1);
    return p->room.operands + p->room.parts + p->room.sums + p->room.lift_kept + p->room.features;
}

/* Lets arrays share memory, if product rows are gathered once, with all factors of their gradients: made rows are not read after that.
 * The memory of each token's made rows and gathered rows, over time:
 *
 *     rows of queries                          | the results of passes: of queries, then of keys
 *     rows of keys                             | gradients of queries' rows
 *     gathered queries, until the last pass    | gradients of keys' rows
 *     gathered keys, until their gradients are computed
 */
static void share_room(passes *p)
{
    const size_t rows = p->room.made / 4;
    p->room.queries = aligned((int64_t)larger(rows, p->room.result), 1);
    p->room.made = p->room.queries + aligned((int64_t)rows, 1);
    p->room.result = 0;
}

static size_t count_room(passes *p)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const struct fpa_launch *f = &p->launch->forward;
    const passes_piece whole = passes_piece_at(p, 0);
    count_rows(p, whole);
    p->room.outputs = g->kernel[CUDA_BACKWARD_OUTPUTS].threads
                          ? aligned(f->batch * f->query_heads * f->length, 2 * sizeof(float))
                          : 0;
    p->room.zero = g->pass_numbers && !g->gate ? aligned(1, sizeof(float)) : 0;
    p->room.weights = g->pass_weighs ? aligned(g->pass_d, sizeof(float)) : 0;
    p->room.forward = larger(forward_bytes(p, whole), forward_bytes(p, last_piece(p)));
    const size_t others = count_gates(p, whole) + count_made(p, whole);
    if (p->shares)
        share_room(p);
    return p->room.outputs + 2 * p->room.rows + p->room.gates + p->room.result + p->room.forward +
           p->room.weights + p->room.zero + p->room.made + others;
}

bool passes_turn(const passes *p, passes_piece these)
{
    const struct fpa_launch sizes = {.batch = these.batch,
                                     .length = round_up(p->reached, CUDA_TURNED),
                                     .query_heads = these.heads,
                                     .heads = these.heads};
    return p->contracts && cuda_turns(p->module->passes[PASS_VALUES], p->form, &sizes);
}

/* Decides what is gathered in all pieces, and whether memory is shared. wanted: what is gathered if kernels can process operands as given
 * in reverse order. */
static void find_spared(passes *p, pass_gathered wanted)
{
    const struct fpa_cuda_geometry *g = &p->cuda->geometry;
    const bool made = g->pass_kept && g->made_width && p->group == 1;
    const bool turns = (made || wanted != GATHERS_ALL) && passes_turn(p, passes_piece_at(p, 0)) &&
                       passes_turn(p, last_piece(p));
    p->gathers = turns ? wanted : GATHERS_ALL;
    p->shares = turns && made && pass_row_width(p, p->gathers) >= g->made_width;
}

/* Divides the call into pieces of equal size, halved until they fit the limit, or have one sequence, or the sequences of one key head:
 * powers of two only, since calls in three pieces were slower (docs/decisions/0142-gates-from-behind-and-room-in-time.md). */
static size_t choose_pieces(passes *p, pass_gathered wanted)
{
    const struct fpa_launch *f = &p->launch->forward;
    const int64_t sequences = f->batch * f->query_heads;
    size_t bytes = 0;
    p->at_once = sequences;
    for (int64_t pieces = 2;; pieces *= 2) {
        find_spared(p, wanted);
        bytes = count_room(p);
        if (bytes <= p->cuda->pass_limit || p->at_once <= p->group)
            return bytes;
        const int64_t some = divide_up(sequences, pieces);
        p->at_once =
            some >= f->query_heads ? some / f->query_heads * f->query_heads : round_up(some, p->group);
    }
}

/* The workspace fits operands of any addresses and strides, which are known only when a call is made. A call of one piece gathers all. */
static size_t choose_gathered(passes *p)
{
    const struct fpa_launch *f = &p->launch->forward;
    const pass_gathered least = pass_least_gathered(p, false), own = pass_least_gathered(p, true);
    size_t bytes = choose_pieces(p, GATHERS_ALL);
    if (least == GATHERS_ALL || p->at_once == f->batch * f->query_heads)
        return bytes;
    bytes = larger(bytes, choose_pieces(p, least));
    if (own != least)
        choose_pieces(p, own);
    return bytes;
}

/* Chooses the chunks at whose ends sums for gradients of log-gates start anew: those at whose ends both passes store states, which must
 * coincide. */
static void choose_chunks(passes *p)
{
    const struct fpa_cuda_geometry *g =
        &((struct fpa_cuda_module *)p->module->passes[p->dots]->handle)->geometry;
    const int64_t length = p->launch->forward.length;
    p->keeps = g->fused_kept > 0;
    p->chunk = p->keeps ? FPA_CUDA_KEPT : g->chunk;
    const bool many = p->cuda->geometry.gate && (p->keeps || p->form == FORM_CHUNKED) && length > p->chunk;
    p->chunks = many ? divide_up(length, p->chunk) : 1;
    p->reached = many ? p->chunks * p->chunk : length;
}

/* Made rows replace q and k. Gradients of matrices need those of rows; until passes_place sets the addresses of these, any pointer but
 * NULL says that they are wanted. */
static void take_rows(passes *p, const struct fpa_backward_launch *launch)
{
    p->made.cuda = p->cuda;
    p->made.launch = launch;
    p->made.matrices = launch->d_weights && p->cuda->geometry.backward_entries;
    p->of_rows = *launch;
    if (p->made.matrices)
        p->of_rows.d_q = p->of_rows.d_k = (void *)(uintptr_t)launch->d_weights;
    p->launch = &p->of_rows;
}

size_t passes_prepare(passes *p, const fpa_module *module, int form, const struct fpa_backward_launch *launch)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const struct fpa_launch *f = &launch->forward;
    *p = (passes){
        .module = module,
        .cuda = cuda,
        .launch = launch,
        /* the passes that read two numbers for each token, parts of values, or features use the chunked form for any length */
        .form = g->pass_numbers || g->pass_features || g->pass_parts > 1 ? FORM_CHUNKED : form,
        .d = g->pass_d,
        .dv = g->pass_dv,
        .contracts = cuda_contracts(module->passes[PASS_VALUES]) &&
                     (form == FORM_PARALLEL || !module->passes[PASS_ROWS]),
        .dots = g->pass_line ? PASS_ROWS : PASS_VALUES,
        .group = f->heads ? f->query_heads / f->heads : 1};
    if (g->made_width)
        take_rows(p, launch);
    choose_chunks(p);
    return f->length > 0 && f->query_heads > 0 && f->batch > 0 ? choose_gathered(p) : 0;
}

/* ---- addresses ---- */

static void *take(char **at, size_t bytes)
{
    void *part = bytes ? *at : NULL;
    *at += bytes;
    return part;
}

static void place_shared(passes *p, char *rows)
{
    struct fpa_cuda_backward *made = &p->made.back;
    p->back.pass_result = rows;
    made->made_keys = made->made_d_queries = rows + p->room.queries;
    made->made_d_keys = p->back.pass_queries;
}

void passes_place(passes *p, char *base)
{
    const passes_room *r = &p->room;
    p->back.outputs = take(&base, r->outputs);
    p->back.pass_queries = take(&base, r->rows);
    p->back.pass_keys = take(&base, r->rows);
    p->back.pass_gates = take(&base, r->gates);
    p->back.pass_result = take(&base, r->result);
    p->forward = take(&base, r->forward);
    p->reads = take(&base, r->reads);
    p->read_dots = take(&base, r->read_dots);
    p->given_dots = take(&base, r->given_dots);
    p->products = take(&base, r->products);
    p->weights = take(&base, r->weights);
    p->zero = take(&base, r->zero);
    p->kept = take(&base, r->kept);
    p->reversed_kept = take(&base, r->kept);
    p->back.made_operands = take(&base, r->operands);
    char *const rows = take(&base, r->made);
    p->back.parts = take(&base, r->parts);
    p->back.sequence_sums = take(&base, r->sums);
    char *const kept = take(&base, r->lift_kept), *const features = take(&base, r->features);
    p->made.call = p->call;
    p->made.back = p->back;
    if (rows)
        made_place(&p->made, rows, p->at_once / p->group);
    if (rows && p->shares)
        place_shared(p, rows);
    if (kept)
        made_place_kept(&p->made, kept, p->at_once / p->group);
    if (features)
        made_place_features(&p->made, features, p->at_once / p->group);
}
