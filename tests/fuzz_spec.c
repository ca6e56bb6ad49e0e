/* Mutated specs against the sandbox and the spec reader. */
#include "fuzz.h"
#include "gen/gen.h"

#include "gen/spec/spec.h"

static void read_spec(const char *path, const unsigned char *bytes, size_t size)
{
    fpa_head_list list = {0};
    fpa_error error;
    if (spec_load_text("fuzz", NULL, (const char *)bytes, size, &list, &error) == FPA_OK)
        head_list_free(&list);
}

int main(int count, char **arguments)
{
    return fuzz_main(count, arguments, "spec", ".lua", read_spec);
}
