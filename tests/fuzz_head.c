/* Mutated canonical heads against their reader: what it accepts must print as it was read. */
#include "fuzz.h"
#include "gen/gen.h"

#include "gen/spec/spec.h"

static void read_head(const char *path, const unsigned char *bytes, size_t size)
{
    fpa_head *head = NULL;
    fpa_error error;
    if (head_parse((const char *)bytes, size, &head, &error))
        return;
    char *text = head_print(head);
    if (!text || strlen(text) != size || memcmp(text, bytes, size))
        abort();
    free(text);
    head_free(head);
}

static void keep_heads(const char *spec)
{
    fpa_head_list list = {0};
    fpa_error error;
    if (spec_load_text("seed", NULL, spec, strlen(spec), &list, &error)) {
        fprintf(stderr, "fuzz_head: %s: %s\n", error.where, error.message);
        exit(1);
    }
    for (int i = 0; i < list.count; i++) {
        char *text = head_print(list.heads[i]);
        if (text)
            fuzz_keep(text, strlen(text));
        free(text);
    }
    head_list_free(&list);
}

int main(int count, char **arguments)
{
    keep_heads(
        "local w = trainable { name = 'w', rows = 3 }\n"
        "return { head { name = 'a', d = 8, dv = 4, terms = tspow { d = 8, degree = 2, block = 2 } },\n"
        "  head { name = 'b', d = 4, dv = 4, terms = { term { w, w }, term { weight = 1 } }, gate = true },\n"
        "  head { name = 'c', d = 2, dv = 2, normalize = 'sum',\n"
        "    terms = { term { dense { { 1, 0.5 } }, diagonal { 1, sqrt2 } } } } }\n");
    return fuzz_main(count, arguments, "head", ".head", read_head);
}
