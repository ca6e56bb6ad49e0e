/* The folders as the architecture: which folder may include which, and that private headers stay private.
 * docs/architecture.md tells why. Tests may include anything. */
#include "claims.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct room {
    const char *name;
    const char *faces; /* headers that other folders may include; "*": all of them */
    const char *sees;  /* folders whose faces its files may include */
} room;

/* A folder's name followed by a blank, so that one is searched as " gen " is. */
static const room rooms[] = {
    {"base", "*", ""},
    {"head", "head.h layer.h lift.h number.h form.h", "base"},
    {"machine", "*", "base head abi"},
    {"abi", "*", "base head"},
    {"gen", "gen.h embedded.h backends.h fault.h",
     "base head machine abi gen/spec gen/simplify gen/plan gen/emit"},
    {"gen/spec", "spec.h", "base head gen"},
    {"gen/simplify", "simplify.h symmetry.h", "base head"},
    {"gen/plan", "candidates.h plan.h features.h facts.h field.h",
     "base head machine abi gen gen/simplify gen/plan/c gen/plan/cuda"},
    {"gen/plan/c", "*", "base head machine gen/plan"},
    {"gen/plan/cuda", "*", "base head machine abi gen/plan"},
    {"gen/emit", "emit.h template.h", "base head machine abi gen gen/plan"},
    {"runtime", "backend.h builder.h kernel.h log.h together.h",
     "base head machine abi runtime/api runtime/verify"},
    {"runtime/api", "fpa.h forward.h layer.h open.h",
     "base head machine abi runtime runtime/c runtime/cuda runtime/store runtime/reference runtime/verify"},
    {"runtime/c", "compiler.h", "base head machine abi runtime runtime/api"},
    {"runtime/cuda", "build.h driver.h nvrtc_library.h watch.h", "base head machine abi runtime runtime/api"},
    {"runtime/store", "bundle_choice.h cache.h lock.h manifest.h",
     "base head machine abi runtime runtime/verify"},
    {"runtime/reference", "reference.h", "base head abi"},
    {"runtime/verify", "verify.h", "base head machine abi runtime runtime/reference"},
    {"command", "",
     "base head machine abi gen gen/spec gen/simplify gen/plan gen/emit runtime runtime/api runtime/c "
     "runtime/cuda runtime/store runtime/verify"},
};
enum { ROOMS = sizeof rooms / sizeof *rooms };

/* The files of the runtime that generate: without them, gen and the builders (tests/test_run_library.c) it is
 * the library that opens bundles. */
static const char *const generating[] = {"runtime/api/open.c", "runtime/api/open_gradients.c",
                                         "runtime/api/opening.c"};
enum { GENERATING = sizeof generating / sizeof *generating };

/* Files outside of gen/spec and gen/emit that know Lua: none. */
static const char *const lua_rooms[] = {"gen/spec", "gen/emit"};

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static bool lists(const char *list, const char *word, size_t size)
{
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += size) {
        const bool begins = at == list || at[-1] == ' ', ends = at[size] == ' ' || at[size] == '\0';
        if (strncmp(at, word, size) == 0 && begins && ends)
            return true;
    }
    return false;
}

static const room *find_room(const char *path)
{
    const char *slash = strrchr(path, '/');
    for (int i = 0; slash && i < ROOMS; i++)
        if (strlen(rooms[i].name) == (size_t)(slash - path) &&
            strncmp(rooms[i].name, path, (size_t)(slash - path)) == 0)
            return &rooms[i];
    return NULL;
}

/* Why a file of `from` may not include header `path` (from the top of the tree), or NULL. */
static const char *refusal(const room *from, const char *file, const char *path)
{
    char folder[64];
    const room *to = find_room(path);
    if (!to)
        return "is in no folder of the table";
    if (to == from)
        return "is in its own folder: name it without the folder";
    const char *header = path + strlen(to->name) + 1;
    if (strcmp(to->faces, "*") != 0 && !lists(to->faces, header, strlen(header)))
        return "is private to its folder";
    for (int i = 0; i < GENERATING; i++)
        if (strcmp(file, generating[i]) == 0 && strcmp(path, "gen/gen.h") == 0)
            return NULL;
    snprintf(folder, sizeof folder, "%s", to->name);
    return lists(from->sees, folder, strlen(folder)) ? NULL : "is in a folder that it may not see";
}

static bool is_beside(const room *from, const char *header)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", from->name, header);
    FILE *file = fopen(path, "r");
    if (file)
        fclose(file);
    return file != NULL;
}

static int check_line(const room *from, const char *file, int number, const char *line)
{
    char header[256];
    const char *why = NULL;
    if (sscanf(line, "#include <%255[^>]>", header) == 1 && strcmp(header, "lua.h") == 0) {
        why = "is for gen/spec and gen/emit";
        for (size_t i = 0; i < sizeof lua_rooms / sizeof *lua_rooms; i++)
            if (strcmp(from->name, lua_rooms[i]) == 0)
                why = NULL;
    } else if (sscanf(line, "#include \"%255[^\"]\"", header) == 1) {
        if (strcmp(header, "fpa_error.h") == 0) /* it is installed beside fpa.h */
            return 0;
        why = strchr(header, '/')       ? refusal(from, file, header)
              : is_beside(from, header) ? NULL
                                        : "is not in its folder";
    }
    if (why)
        print_error("%s:%d: %s %s\n", file, number, header, why);
    return why != NULL;
}

static int check_file(const room *from, const char *name)
{
    char path[512], line[1024];
    int wrong = 0, number = 0;
    snprintf(path, sizeof path, "%s/%s", from->name, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        wrong += check_line(from, path, ++number, line);
    fclose(file);
    return wrong;
}

static void each_file_includes_what_its_folder_may_see(void **state)
{
    int wrong = 0, files = 0;
    for (int i = 0; i < ROOMS; i++) {
        DIR *folder = opendir(rooms[i].name);
        assert_non_null(folder);
        for (struct dirent *item = readdir(folder); item; item = readdir(folder)) {
            if (!ends_with(item->d_name, ".c") && !ends_with(item->d_name, ".h"))
                continue;
            files++;
            wrong += check_file(&rooms[i], item->d_name);
        }
        closedir(folder);
    }
    assert_true(files > 150);
    assert_int_equal(wrong, 0);
}

/* The comment at the top of each face says what the folder is given and what it gives. */
static void each_folder_says_what_it_is_given_and_gives(void **state)
{
    static const char *const faces[] = {"head/head.h",
                                        "machine/target.h",
                                        "abi/source.h",
                                        "gen/gen.h",
                                        "gen/spec/spec.h",
                                        "gen/simplify/simplify.h",
                                        "gen/plan/plan.h",
                                        "gen/emit/emit.h",
                                        "runtime/backend.h",
                                        "runtime/api/fpa.h",
                                        "runtime/c/compiler.h",
                                        "runtime/cuda/build.h",
                                        "runtime/store/cache.h",
                                        "runtime/reference/reference.h",
                                        "runtime/verify/verify.h"};
    for (size_t i = 0; i < sizeof faces / sizeof *faces; i++) {
        char text[4096] = "";
        FILE *file = fopen(faces[i], "r");
        assert_non_null(file);
        const size_t size = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[size] = '\0';
        char *end = strstr(text, "*/");
        assert_non_null(end);
        *end = '\0';
        if (!strstr(text, "Given") || !strstr(text, "ives"))
            fail_msg("%s does not say what its folder is given and what it gives", faces[i]);
    }
}

/* The check must be able to fail. */
static void what_a_folder_may_not_see_is_refused(void **state)
{
    const room *gen = find_room("gen/gen.h"), *cuda = find_room("runtime/cuda/launch.c");
    assert_non_null(refusal(gen, "gen/source.c", "runtime/backend.h"));
    assert_non_null(refusal(cuda, "runtime/cuda/launch.c", "gen/gen.h"));
    assert_non_null(refusal(cuda, "runtime/cuda/launch.c", "gen/plan/cuda/cluster_scan.h"));
    assert_non_null(refusal(find_room("command/run.c"), "command/run.c", "runtime/api/view.h"));
    assert_non_null(refusal(find_room("head/head.c"), "head/head.c", "head/number.h"));
    assert_null(refusal(find_room(generating[0]), generating[0], "gen/gen.h"));
    assert_non_null(refusal(find_room(generating[0]), "runtime/api/fpa.c", "gen/gen.h"));
    assert_null(refusal(cuda, "runtime/cuda/launch.c", "abi/cuda_call.h"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_includes_what_its_folder_may_see),
        cmocka_unit_test(each_folder_says_what_it_is_given_and_gives),
        cmocka_unit_test(what_a_folder_may_not_see_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
