/* Damaged files of the cache and of bundles. A head that opens all the same computes the toy's formula. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/scratch.h"
#include "tests/toy.h"
#include "torture.h"

enum { MOST_FILES = 16, DEADLINE = 60 };

/* The files of a folder as they are when nothing is wrong. */
typedef struct originals {
    int count;
    char path[MOST_FILES][TORTURE_PATH];
    fpa_file file[MOST_FILES];
} originals;

static bool read_originals(const char *folder, originals *all)
{
    fpa_error error;
    DIR *list = opendir(folder);
    all->count = 0;
    if (!list)
        return torture_says("%s cannot be listed", folder);
    for (struct dirent *item = readdir(list); item && all->count < MOST_FILES; item = readdir(list)) {
        if (item->d_name[0] == '.')
            continue;
        snprintf(all->path[all->count], TORTURE_PATH, "%.200s/%.200s", folder, item->d_name);
        if (file_read(all->path[all->count], &all->file[all->count], &error) == FPA_OK)
            all->count++;
    }
    closedir(list);
    return all->count > 0 || torture_says("%s is empty", folder);
}

static void drop_originals(originals *all)
{
    for (int i = 0; i < all->count; i++)
        free(all->file[i].bytes);
}

/* Write one file with something wrong; the others as they were. */
static int damage_one(random_source *random, const originals *all)
{
    const int which = random_between(random, 0, all->count - 1);
    const char *path = all->path[which];
    const fpa_file *file = &all->file[which];
    unsigned char *bytes = malloc(file->size + 64);
    size_t size = file->size, at = random_bits(random) % (size + 1);
    for (int i = 0; i < all->count; i++) {
        folder_remove(all->path[i]);
        scratch_write(all->path[i], all->file[i].bytes, all->file[i].size);
    }
    memcpy(bytes, file->bytes, size);
    switch (random_between(random, 0, 9)) {
    case 0:
        size = at;
        break;
    case 1:
        memset(bytes + size, 'x', 64);
        size += random_bits(random) % 64 + 1;
        break;
    case 2:
        memset(bytes + at, 0, size - at);
        break;
    case 3:
        unlink(path);
        free(bytes);
        return random_chance(random, 0.5) ? mkdir(path, 0700) : symlink("/dev/zero", path);
    case 4:
        unlink(path);
        free(bytes);
        return mkfifo(path, 0600);
    default: /* most often bits, in the first bytes as often as in all */
        for (int i = random_between(random, 1, 3); i > 0 && size; i--)
            bytes[random_bits(random) % (random_chance(random, 0.5) && size > 400 ? 400 : size)] ^=
                (unsigned char)(1 << random_between(random, 0, 7));
    }
    scratch_write(path, bytes, size);
    free(bytes);
    return 0;
}

/* The toy of the cache or of a bundle, opened and used. */
static bool open_from(const char *bundle, bool may_refuse)
{
    fpa_error error = {0};
    fpa_kernel *kernel = NULL;
    const fpa_options options = {.backward = 1};
    fpa_status status = bundle ? fpa_open_bundle(bundle, NULL, &options, &kernel, &error)
                               : fpa_open_text("toy", TOY_SPEC, NULL, NULL, &kernel, &error);
    if (status)
        return (may_refuse && *error.message) || torture_says("%s: %s", error.where, error.message);
    const bool right = toy_works(kernel);
    fpa_close(kernel);
    return right || torture_says("the toy's numbers are wrong");
}

static bool open_in_child(const char *bundle, bool may_refuse)
{
    pid_t child = fork();
    if (child == 0)
        _exit(open_from(bundle, may_refuse) ? 0 : 1);
    const int status = torture_wait(child, DEADLINE);
    if (status == TORTURE_HANGS)
        return torture_says("opening it does not end");
    return status == 0 ||
           (WIFSIGNALED(status) ? torture_says("opening it ends by signal %d", WTERMSIG(status)) : false);
}

static bool damage_all(torture *t, const char *folder, const char *bundle)
{
    const int damages = bundle ? 24 : 4; /* a damaged entry is compiled again */
    originals all;
    bool fine = read_originals(folder, &all);
    for (int i = 0; fine && i < damages; i++) {
        damage_one(&t->random, &all);
        t->tries++;
        fine = open_in_child(bundle, bundle != NULL);
        if (!bundle)
            fine = fine && open_in_child(NULL, false); /* of what the first one stored again */
    }
    drop_originals(&all);
    return fine;
}

bool torture_cache(torture *t)
{
    return open_in_child(NULL, false) && damage_all(t, getenv("FPA_CACHE_DIR"), NULL);
}

bool torture_bundle(torture *t)
{
    char spec[TORTURE_PATH], bundle[TORTURE_PATH];
    int code;
    torture_path(t, "toy.lua", spec);
    torture_path(t, "bundle", bundle);
    scratch_write(spec, TOY_SPEC, strlen(TOY_SPEC));
    const char *const gen[] = {"gen", spec, "-o", bundle, "--object", "--backward", NULL};
    if (!torture_fpac(t, gen, 0, &code) || code)
        return torture_says("fpac gen failed");
    return open_in_child(bundle, false) && damage_all(t, bundle, bundle);
}
