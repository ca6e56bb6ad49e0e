/* Product rows of passes (gen/plan/pairs.h): backward_gather forms them, backward_scatter computes the
 * gradients of their factors, both from a block's tokens in shared memory, two tokens a lane. */
#include "backward.h"

#include "base/round.h"

enum { WORD = 4, ELEMENT = 2, PIECE = 16 };

/* Bytes from one number of all tokens to the next: an odd number of words, so that lanes with a number each
 * use different banks. */
static int pair_pitch(void)
{
    return WORD * (FPA_CUDA_PASS_TOKENS / 2 | 1);
}

/* Bytes from one token to the next: an odd number of pieces of 16 bytes, so that eight lanes with a token
 * each use different banks. */
static int token_pitch(int numbers)
{
    return PIECE * (divide_up(ELEMENT * numbers, PIECE) | 1);
}

/* Words of two neighbours at least one of which is marked. */
static int count_words(const bool *marked, int count)
{
    int words = 0;
    for (int i = 0; i < count; i += 2)
        words += marked[i] || (i + 1 < count && marked[i + 1]);
    return words;
}

/* The number of rows of which a vector's number is the product; 0 if it is constant, zero or one. */
static int count_factors(const int *factor, int factors)
{
    int count = 0;
    for (int l = 0; l < factors; l++)
        if (factor[l] == PAIR_ZERO)
            return 0;
        else
            count += factor[l] >= 0;
    return count;
}

static void mark_factors(const int *factor, int factors, bool *marked)
{
    for (int l = 0; l < factors; l++)
        if (factor[l] >= 0)
            marked[factor[l]] = true;
}

/* Counts the words that are fetched of rows and vectors. */
static void count_formed(fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    const int d = plan->head->d, factors = back->pass_factors, width = back->pass_entries / factors;
    bool *rows = arena_array(&plan->memory, 2 * (size_t)d + (size_t)width, sizeof *rows);
    bool *others = rows + d, *numbers = others + d;
    for (int i = 0; i < width; i++) {
        const int *factor = back->pass_factor + i * factors, count = count_factors(factor, factors);
        numbers[i] = count > 0;
        if (count > 0)
            mark_factors(factor, factors, rows);
        if (count > 1)
            mark_factors(factor, factors, others);
    }
    back->formed_rows = count_words(rows, d);
    back->formed_others = count_words(others, d);
    back->formed_numbers = count_words(numbers, width);
}

/* Bytes of `words` words of all tokens. */
static int pair_bytes(const fpa_cuda_backward_plan *back, int words)
{
    return 2 * words * back->formed_pair_pitch;
}

/* Shared memory of backward_gather for vectors of `numbers` numbers. */
static int gather_bytes(const fpa_cuda_backward_plan *back, int numbers)
{
    return (int)round_up(pair_bytes(back, back->formed_rows), PIECE) +
           FPA_CUDA_PASS_TOKENS * token_pitch(numbers);
}

/* Blocks of `bytes` bytes that fit on a multiprocessor; registers, some 80 a thread, allow six. */
static int count_blocks(int bytes)
{
    enum { ROOM = 228 << 10, OWN = 1 << 10 /* reserved by the GPU for each block */, MOST = 6 };
    const int blocks = ROOM / (bytes + OWN);
    return blocks < MOST ? blocks : MOST;
}

/* Numbers that backward_gather stores after a row for backward_scatter; none if that would leave fewer
 * blocks. */
static int count_kept(const fpa_cuda_backward_plan *back, int width)
{
    const int kept = (int)round_up(2 * back->formed_others, PIECE / ELEMENT);
    return count_blocks(gather_bytes(back, width + kept)) < count_blocks(gather_bytes(back, width)) ? 0
                                                                                                    : kept;
}

void plan_backward_formed(fpa_plan *plan, fpa_cuda_backward_plan *back)
{
    if (!back->passes.formed)
        return;
    const fpa_simplified simple = {.head = (fpa_head *)(uintptr_t)plan->head, .score = *plan->score};
    const int width = halves_width(&simple);
    back->pass_factors = halves_factors(&simple);
    back->pass_entries = width * back->pass_factors;
    back->pass_factor = arena_array(&plan->memory, back->pass_entries, sizeof *back->pass_factor);
    back->formed_lanes = FPA_CUDA_PASS_TOKENS / 2;
    back->formed_pair_pitch = pair_pitch();
    back->formed_gradient_pitch = token_pitch(plan->head->d);
    halves_list(&simple, back->pass_factor);
    count_formed(plan, back);
    back->formed_kept = count_kept(back, width);
    back->formed_vector_pitch = token_pitch(width + back->formed_kept);
}

void fill_backward_formed(const fpa_cuda_backward_plan *back, struct fpa_cuda_geometry *g)
{
    g->kernel[CUDA_BACKWARD_GATHER].bytes =
        gather_bytes(back, back->pass_entries / back->pass_factors + back->formed_kept);
    g->kernel[CUDA_BACKWARD_SCATTER].bytes =
        (int)round_up(pair_bytes(back, back->formed_numbers + back->formed_others), PIECE) +
        FPA_CUDA_PASS_TOKENS * back->formed_gradient_pitch;
}
