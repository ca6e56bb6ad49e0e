/* Mutated manifests of bundles against their reader. */
#include "fuzz.h"

#include "runtime/store/manifest.h"

static void read_manifest(const char *path, const unsigned char *bytes, size_t size)
{
    fpa_manifest manifest = {0};
    fpa_error error;
    if (manifest_parse(path, (const char *)bytes, size, &manifest, &error))
        return;
    char *text = manifest_print(&manifest);
    if (!text || strlen(text) != size || memcmp(text, bytes, size))
        abort();
    free(text);
    manifest_free(&manifest);
}

int main(int count, char **arguments)
{
    return fuzz_main(count, arguments, "manifest", "manifest.fpa", read_manifest);
}
