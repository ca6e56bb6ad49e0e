/* One vocabulary: what the tables name is in docs/glossary.md, and a symbol has the name of its table's row. */
#include "abi/cuda_kernels.h"
#include "gen/plan/cuda/mechanism.h"
#include "head/form.h"
#include "machine/cuda_mechanism.h"
#include "claims.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static char text[1 << 16];

static int read_glossary(void **state)
{
    FILE *file = fopen("docs/glossary.md", "r");
    if (!file)
        return -1;
    const size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    return fclose(file) || size == sizeof text - 1 ? -1 : 0;
}

/* Whether `word` is one of the words, between commas, of a row `| words | meaning |`. */
static bool is_explained(const char *word)
{
    const size_t length = strlen(word);
    for (const char *row = strstr(text, "\n| "); row; row = strstr(row + 1, "\n| ")) {
        const char *at = row + 3, *end = strstr(at, " | ");
        while (end && at < end) {
            if (strncmp(at, word, length) == 0 && (at + length == end || at[length] == ','))
                return true;
            const char *comma = memchr(at, ',', (size_t)(end - at));
            at = comma ? comma + 2 : end;
        }
    }
    return false;
}

static void every_cuda_kernel_is_in_the_glossary(void **state)
{
    for (int i = 0; i < FPA_CUDA_KERNELS; i++)
        if (!is_explained(cuda_kernel_names[i]))
            fail_msg("docs/glossary.md does not explain %s", cuda_kernel_names[i]);
}

static void every_mechanism_of_candidates_is_in_the_glossary(void **state)
{
    for (int i = 0; i < MECHANISMS; i++)
        if (!is_explained(cuda_mechanism_names[i]))
            fail_msg("docs/glossary.md does not explain %s", cuda_mechanism_names[i]);
}

static void every_mechanism_is_in_the_glossary(void **state)
{
    for (int m = 0; m < CUDA_MECHANISMS; m++)
        if (!is_explained(cuda_mechanisms[m].name))
            fail_msg("docs/glossary.md does not explain %s", cuda_mechanisms[m].name);
}

static void every_form_is_in_the_glossary(void **state)
{
    const char *row = strstr(text, "\n| form | ");
    assert_non_null(row);
    for (int form = 0; form < FORMS; form++) {
        const char *found = strstr(row, form_name((fpa_form_index)form));
        assert_true(found && found < strchr(row + 1, '\n'));
    }
}

/* The comment of cuda_call.h, which emitted files carry, tells of each kernel by its symbol. */
static void every_cuda_kernel_is_told_of_in_emitted_files(void **state)
{
    static char call[1 << 16];
    FILE *file = fopen("abi/cuda_call.h", "r");
    assert_non_null(file);
    call[fread(call, 1, sizeof call - 1, file)] = '\0';
    fclose(file);
    for (int i = 0; i < FPA_CUDA_KERNELS; i++) {
        char symbol[64];
        snprintf(symbol, sizeof symbol, "NAME_%s ", cuda_kernel_names[i]);
        if (!strstr(call, symbol))
            fail_msg("abi/cuda_call.h does not tell what %s does", symbol);
    }
}

static void a_word_that_is_nowhere_is_not_explained(void **state)
{
    assert_false(is_explained("chunk_stat"));
    assert_false(is_explained("relay"));
    assert_true(is_explained("consumer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cuda_kernel_is_in_the_glossary),
        cmocka_unit_test(every_mechanism_of_candidates_is_in_the_glossary),
        cmocka_unit_test(every_mechanism_is_in_the_glossary),
        cmocka_unit_test(every_form_is_in_the_glossary),
        cmocka_unit_test(every_cuda_kernel_is_told_of_in_emitted_files),
        cmocka_unit_test(a_word_that_is_nowhere_is_not_explained),
    };
    return cmocka_run_group_tests(tests, read_glossary, NULL);
}
