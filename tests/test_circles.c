/* No circle of files: where a file uses another, the other uses it in no way, not even through third ones.
 * What a file uses is what the linker sees: symbols that its object leaves open and another object defines.
 * And no test defines a symbol of the libraries: the linker would take it in the library's place, unsaid.
 */
#include "claims.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const libraries[] = {"base", "head", "machine", "gen", "runtime", "command", NULL};
static const char *const programs[] = {"tests", NULL};

enum { MANY_FILES = 500, MANY_SYMBOLS = 20000, NO_FILE = -1 };

typedef struct symbol {
    char *name;
    int file; /* whose object defines it, or leaves it open */
} symbol;

/* Files, what they define and what they leave open; uses[a][b]: a symbol of b that a leaves open. */
typedef struct graph {
    int files, defined_count, open_count;
    char *file[MANY_FILES]; /* "gen/plan/plan" */
    symbol defined[MANY_SYMBOLS], open[MANY_SYMBOLS];
    const char *uses[MANY_FILES][MANY_FILES];
    bool reaches[MANY_FILES][MANY_FILES];
} graph;

static int graph_file(graph *g, const char *name)
{
    assert_true(g->files < MANY_FILES);
    g->file[g->files] = strdup(name);
    return g->files++;
}

static void graph_define(graph *g, int file, const char *name)
{
    assert_true(g->defined_count < MANY_SYMBOLS);
    g->defined[g->defined_count++] = (symbol){strdup(name), file};
}

static void graph_open(graph *g, int file, const char *name)
{
    assert_true(g->open_count < MANY_SYMBOLS);
    g->open[g->open_count++] = (symbol){strdup(name), file};
}

static void graph_free(graph *g)
{
    for (int i = 0; i < g->files; i++)
        free(g->file[i]);
    for (int i = 0; i < g->defined_count; i++)
        free(g->defined[i].name);
    for (int i = 0; i < g->open_count; i++)
        free(g->open[i].name);
    free(g);
}

static int compare_symbols(const void *a, const void *b)
{
    return strcmp(((const symbol *)a)->name, ((const symbol *)b)->name);
}

/* Who uses whom, at once and through others. */
static void graph_connect(graph *g)
{
    qsort(g->defined, (size_t)g->defined_count, sizeof *g->defined, compare_symbols);
    for (int i = 0; i < g->open_count; i++) {
        const symbol *from = &g->open[i],
                     *to = bsearch(from, g->defined, (size_t)g->defined_count, sizeof *to, compare_symbols);
        if (!to || to->file == from->file)
            continue;
        g->uses[from->file][to->file] = to->name;
        g->reaches[from->file][to->file] = true;
    }
    for (int through = 0; through < g->files; through++)
        for (int a = 0; a < g->files; a++)
            for (int b = 0; g->reaches[a][through] && b < g->files; b++)
                g->reaches[a][b] |= g->reaches[through][b];
}

/* Uses within circles, each printed. */
static int graph_circles(const graph *g)
{
    int count = 0;
    for (int a = 0; a < g->files; a++)
        for (int b = 0; b < g->files; b++) {
            if (!g->uses[a][b] || !g->reaches[b][a])
                continue;
            print_error("in a circle: %s.c uses %s.c (%s)\n", g->file[a], g->file[b], g->uses[a][b]);
            count++;
        }
    return count;
}

/* ---- objects ---- */

static void read_symbols(graph *g, int file, const char *bytes)
{
    const Elf64_Ehdr *object = (const Elf64_Ehdr *)bytes;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(bytes + object->e_shoff);
    for (int s = 0; s < object->e_shnum; s++) {
        if (section[s].sh_type != SHT_SYMTAB)
            continue;
        const char *names = bytes + section[section[s].sh_link].sh_offset;
        const Elf64_Sym *entry = (const Elf64_Sym *)(bytes + section[s].sh_offset);
        for (size_t i = 0; i < section[s].sh_size / sizeof *entry; i++) {
            if (ELF64_ST_BIND(entry[i].st_info) != STB_GLOBAL)
                continue;
            if (entry[i].st_shndx == SHN_UNDEF)
                graph_open(g, file, names + entry[i].st_name);
            else
                graph_define(g, file, names + entry[i].st_name);
        }
    }
}

static void read_object(graph *g, const char *path, const char *name)
{
    struct stat about;
    const int file = open(path, O_RDONLY);
    assert_true(file >= 0 && fstat(file, &about) == 0);
    const size_t size = (size_t)about.st_size;
    char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    assert_true(size > sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0);
    assert_int_equal(bytes[EI_CLASS], ELFCLASS64);
    read_symbols(g, graph_file(g, name), bytes);
    munmap(bytes, size);
}

static graph *walked;       /* nftw takes no argument of its caller's */
static size_t walked_start; /* of a name below the folder of objects */

/* Objects of sources that are gone stay where they are: they do not count. */
static int visit(const char *path, const struct stat *about, int type, struct FTW *at)
{
    char name[256], source[272];
    const char *end = strrchr(path, '.');
    (void)about, (void)at;
    if (type != FTW_F || !end || strcmp(end, ".o") != 0)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)((size_t)(end - path) - walked_start), path + walked_start);
    snprintf(source, sizeof source, "%s.c", name);
    if (access(source, R_OK) == 0)
        read_object(walked, path, name);
    return 0;
}

/* The objects beside the folder that this program is in: BUILD/tests and BUILD/obj. */
static void walk_objects(graph *g, const char *const *folders)
{
    char program[4096], folder[4200];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    for (int i = 0; i < 2; i++)
        *strrchr(program, '/') = '\0';
    walked = g;
    walked_start = strlen(program) + strlen("/obj/");
    for (size_t i = 0; folders[i]; i++) {
        snprintf(folder, sizeof folder, "%s/obj/%s", program, folders[i]);
        assert_int_equal(nftw(folder, visit, 16, FTW_PHYS), 0);
    }
}

static int find_file(const graph *g, const char *name)
{
    for (int i = 0; i < g->files; i++)
        if (strcmp(g->file[i], name) == 0)
            return i;
    return NO_FILE;
}

static void no_files_use_each_other_in_a_circle(void **state)
{
    graph *g = calloc(1, sizeof *g);
    assert_non_null(g);
    walk_objects(g, libraries);
    graph_connect(g);
    const int source = find_file(g, "gen/source"), plan = find_file(g, "gen/plan/plan");
    const bool seen = source >= 0 && plan >= 0 && g->uses[source][plan];
    const int files = g->files, circles = graph_circles(g);
    graph_free(g);
    assert_true(files > 100);
    assert_int_equal(circles, 0);
    if (!seen) { /* -flto */
        print_message("objects have no symbols here\n");
        skip();
    }
}

/* Symbols of the tests' files that a file of the libraries defines as well, each printed. */
static int graph_replaced(const graph *tests, const graph *library)
{
    int count = 0;
    for (int i = 0; i < tests->defined_count; i++) {
        const symbol *here = &tests->defined[i],
                     *there = bsearch(here, library->defined, (size_t)library->defined_count, sizeof *there,
                                      compare_symbols);
        if (!there || strcmp(here->name, "main") == 0)
            continue;
        print_error("%s.c replaces %s of %s.c\n", tests->file[here->file], here->name,
                    library->file[there->file]);
        count++;
    }
    return count;
}

static void tests_replace_nothing_of_the_libraries(void **state)
{
    graph *library = calloc(1, sizeof *library), *tests = calloc(1, sizeof *tests);
    assert_true(library && tests);
    walk_objects(library, libraries);
    walk_objects(tests, programs);
    graph_connect(library);
    const int replaced = graph_replaced(tests, library);
    graph_define(tests, 0, library->defined[0].name);
    const int planted = graph_replaced(tests, library) - replaced;
    graph_free(library);
    graph_free(tests);
    assert_int_equal(replaced, 0);
    assert_int_equal(planted, 1); /* the check can fail */
}

/* The check must be able to fail. */
static void a_circle_of_three_files_is_found(void **state)
{
    graph *g = calloc(1, sizeof *g);
    assert_non_null(g);
    static const char *const names[] = {"a", "b", "c", "above"};
    for (int i = 0; i < 4; i++)
        graph_define(g, graph_file(g, names[i]), names[i]);
    graph_open(g, 0, "b");
    graph_open(g, 1, "c");
    graph_open(g, 3, "a");
    graph_connect(g);
    const int before = graph_circles(g);
    graph_open(g, 2, "a");
    graph_connect(g);
    const int after = graph_circles(g);
    graph_free(g);
    assert_int_equal(before, 0);
    assert_int_equal(after, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_files_use_each_other_in_a_circle),
        cmocka_unit_test(tests_replace_nothing_of_the_libraries),
        cmocka_unit_test(a_circle_of_three_files_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
