/* Emitted code reads as hand-written: lines, indentation, functions, comments. */
#include "gen/gen.h"
#include "claims.h"
#include "dear.h"
#include "emitted_text.h"
#include "shipped_heads.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS = 120, BODY = 80, INDENT = 4 };

/* ---- lines ---- */

static void check_lines(struct text *t)
{
    for (int i = 0; i < t->count; i++) {
        const struct line *line = &t->line[i];
        if (line->size > COLUMNS)
            wrong(t, line, "more than 120 columns");
        if (line->size && isblank((unsigned char)line->text[line->size - 1]))
            wrong(t, line, "blanks at the end");
        if (strchr(line->text, '\t'))
            wrong(t, line, "a tab");
        if (i && !line->size && !t->line[i - 1].size)
            wrong(t, line, "a second empty line");
    }
}

/* ---- indentation ---- */

/* An if, for, while or else whose statement is the next line. */
static bool heads_statement(const char *code)
{
    static const char *const words[] = {"if ", "for ", "while ", "else", "} else"};
    const char *first = code + strspn(code, " ");
    const char last = last_of(code);
    for (int i = 0; i < 5; i++)
        if (!strncmp(first, words[i], strlen(words[i])))
            return last == ')' || (last == 'e' && strstr(first, "else"));
    return false;
}

static int net(const char *code, char open, char close)
{
    int depth = 0;
    for (; *code; code++)
        depth += (*code == open) - (*code == close);
    return depth;
}

/* What is known of the lines before, by depth of braces. */
struct nest {
    int depth;
    int base[64];   /* indents of a block's statements */
    int parens[64]; /* open, of the statement that a block is in */
    int further;    /* of the next line, which belongs to a line without braces */
    uint64_t ifs;   /* indents at which an else may follow */
    bool continues; /* the next line goes on with a statement */
};

static int nest_indent(const struct nest *n, const char *first)
{
    const int own = n->base[n->depth] + n->further;
    return *first == '}' ? n->base[n->depth] - 1 : own;
}

/* Take in a line of code that stands `own` indents deep. */
static void nest_go_on(struct nest *n, const char *code, int own, bool begins)
{
    const char *first = code + strspn(code, " ");
    const char last = last_of(code);
    const int braces = net(code, '{', '}');
    n->parens[n->depth] += net(code, '(', ')');
    if (begins && (!strncmp(first, "if ", 3) || strstr(first, "else if ")))
        n->ifs |= 1ull << own;
    if (*first == '}' && last == '{' && braces == 0) {
        n->base[n->depth] = own + 1;
        n->further = 0;
    } else if (braces > 0) {
        for (int i = 0; i < braces; i++) { /* two of an initialiser */
            n->base[++n->depth] = own + 1;
            n->parens[n->depth] = n->further = 0;
        }
    } else if (braces < 0) {
        assert_true(n->depth + braces >= 0);
        n->depth += braces;
        n->parens[n->depth] += n->depth < 63 ? n->parens[n->depth + 1] : 0;
        n->further = 0;
    }
    n->continues = last == '{' ? false : n->parens[n->depth] > 0 || !strchr(";}", last);
    if (n->parens[n->depth] == 0 && heads_statement(code) && last != '{') {
        n->further = (begins ? own + 1 : n->further + n->base[n->depth] + 1) - n->base[n->depth];
        n->continues = false;
    } else if (!n->continues && last != '{') {
        n->further = 0;
    }
}

/* Statements begin at their block's depth, or one deeper behind the line that they belong to. Lines that go
 * on with a statement are at least as deep. */
static void check_indents(struct text *t)
{
    struct nest n = {.depth = 0};
    bool directive = false, only_cpp = false; /* only_cpp: a bracket that C does not see */
    for (int i = 0; i < t->count; i++) {
        const struct line *line = &t->line[i];
        const char *first = line->code + indent_of(line);
        const bool goes_on = directive, begins = !n.continues;
        directive = (goes_on || *line->text == '#') && last_of(line->code) == '\\';
        if (*line->text == '#')
            only_cpp = !strcmp(line->text, "#ifdef __cplusplus");
        if (goes_on || *line->text == '#' || only_cpp || is_blank(line->code))
            continue;
        const int at = indent_of(line), own = nest_indent(&n, first);
        const bool label = !strncmp(first, "case ", 5) || !strncmp(first, "default:", 8);
        const bool other = !strncmp(first, "else", 4) && at % INDENT == 0 && n.ifs >> at / INDENT & 1;
        if (begins && at != INDENT * own && !(label && at == INDENT * (own - 1)) && !other)
            wrong(t, line, "not at its block's depth");
        else if (!begins && at < INDENT * own)
            wrong(t, line, "less deep than its statement");
        nest_go_on(&n, line->code, other ? at / INDENT : own, begins);
        if (label)
            n.continues = false;
    }
    if (n.depth)
        wrong(t, &t->line[t->count - 1], "braces are left open");
}

/* ---- what nobody would write ---- */

static void check_patterns(struct text *t)
{
    static const char *const patterns[] = {" + 0;", " + 0)", " + 0]", " + 0,", " + 0 ", " * 1;",  " * 1)",
                                           " * 1]", " * 1,", " * 1 ", " - 0;", " - 0)", " - 0]",  " / 1;",
                                           " / 1)", " / 1 ", "(0 + ", "[0 + ", "(1 * ", "= 1 * ", ";;",
                                           "( ",    " )",    "[ ",    " ]",    ", )",   ",)",     "= 0 + "};
    for (int i = 0; i < t->count; i++) {
        const struct line *line = &t->line[i];
        const char *first = line->code + strspn(line->code, " ");
        for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
            if (strstr(first, patterns[p]) && *first != '#' && strncmp(first, "asm", 3) != 0 &&
                !(*patterns[p] == ' ' && patterns[p][1] == ')' && *first == ')') &&
                !strstr(line->text, "for (;"))
                wrong(t, line, patterns[p]);
    }
}

/* ---- functions ---- */

/* Bodies have at most 80 lines; longer ones, which are unrolled, are in sections of at most so many. */
static void check_bodies(struct text *t)
{
    int begin = -1, section = 0;
    for (int i = 1; i < t->count; i++) {
        const struct line *line = &t->line[i];
        if (!strcmp(line->text, "{") && t->line[i - 1].size && last_of(t->line[i - 1].code) == ')')
            begin = section = i;
        if (begin < 0)
            continue;
        if (line->comment)
            section = i;
        if (i - section > BODY && begin >= 0) {
            wrong(t, &t->line[begin - 1], "80 lines of a body without a section");
            begin = -1;
        }
        if (!strcmp(line->text, "}"))
            begin = -1;
    }
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The name that a line defines a function of; NULL: none. */
static const char *function_of(const struct line *line, int *size)
{
    const char *open = strchr(line->code, '(');
    if (!open || strncmp(line->code, "__device__ __forceinline__", 26) != 0)
        return NULL;
    const char *name = open;
    while (name > line->code && is_name(name[-1]))
        name--;
    *size = (int)(open - name);
    return name;
}

static bool has_name(const char *code, const char *name, int size)
{
    for (const char *at = code; (at = strstr(at, name)) != NULL; at++)
        if ((at == code || !is_name(at[-1])) && !is_name(at[size]))
            return true;
    return false;
}

/* No function is there that no other line names. */
static void check_uses(struct text *t)
{
    for (int i = 0; i < t->count; i++) {
        int size = 0;
        const char *name = function_of(&t->line[i], &size);
        if (!name)
            continue;
        char own[128];
        snprintf(own, sizeof own, "%.*s", size, name);
        bool used = false;
        for (int j = 0; j < t->count && !used; j++)
            used = j != i && has_name(t->line[j].code, own, size);
        if (!used)
            wrong(t, &t->line[i], "nobody uses it");
    }
}

/* ---- comments ---- */

/* A comment stands before what it is about. */
static void check_comments(struct text *t)
{
    for (int i = 0; i + 1 < t->count; i++) {
        const struct line *line = &t->line[i];
        if (!line->comment || !strstr(line->text, "*/") || !is_blank(line->code))
            continue;
        int first = i;
        while (first > 0 && !strstr(t->line[first].text, "/*"))
            first--;
        const char *begins = t->line[first].text;
        begins += strspn(begins, " ");
        if (i > first && !strcmp(line->text + indent_of(line), "* */"))
            wrong(t, line, "an end of a comment alone");
        if (first > 0 && !strncmp(begins, "/* ----", 7) && t->line[first - 1].size)
            wrong(t, line, "a section that no empty line sets apart");
        if (first == 0 || strncmp(begins, "/*", 2) != 0 || !strncmp(begins, "/* ----", 7))
            continue;
        if (!t->line[i + 1].size)
            wrong(t, line, "a comment before nothing");
        else if (t->line[i + 1].text[indent_of(&t->line[i + 1])] == '}')
            wrong(t, line, "a comment before the end of its block");
    }
}

/* Whether a text has a word that begins so, as a name or as a part of words in comments. */
static bool has_word(const char *text, const char *begin)
{
    for (const char *at = text; (at = strstr(at, begin)) != NULL; at++)
        if (at == text || !is_name(at[-1]))
            return true;
    return false;
}

/* Comments do not speak of what the head has not. Before its first section a CUDA text has what all heads' launches
 * have in common. */
static void check_words(struct text *t, const fpa_head *head)
{
    static const char *const gates[] = {"gate", "Gate", "fade", "decay", "exp(G"};
    static const char *const sums[] = {"normalis", "ones of z", "column of z", "sum of weights"};
    bool sections = false;
    for (int i = 0; i < t->count; i++) {
        const struct line *line = &t->line[i];
        sections = sections || !strncmp(line->text, "/* ---- storage", 15);
        if (!sections || !line->comment)
            continue;
        for (int w = 0; w < 5 && !head->gate; w++)
            if (has_word(line->text, gates[w]))
                wrong(t, line, "a word about gates, which the head has not");
        for (int w = 0; w < 4 && head->normalize == FPA_NORMALIZE_NONE; w++)
            if (has_word(line->text, sums[w]))
                wrong(t, line, "a word about a normaliser, which the head has not");
    }
}

/* ---- all heads ---- */

static shipped_heads heads;

static int load_heads(void **state)
{
    return (void)state, shipped_load(&heads), 0;
}

static int free_heads(void **state)
{
    return (void)state, shipped_free(&heads), 0;
}

static int check_text(const char *about, const char *code, const fpa_head *head)
{
    struct text t;
    emitted_read(&t, about, code);
    check_lines(&t);
    check_indents(&t);
    check_patterns(&t);
    check_bodies(&t);
    check_uses(&t);
    check_comments(&t);
    check_words(&t, head);
    const int found = t.wrong;
    if (found)
        print_message("%s: %d\n", about, found);
    emitted_free(&t);
    return found;
}

typedef fpa_status generator(const fpa_head *head, const char *target, fpa_source *source, fpa_error *error);

static int check_source(const fpa_head *head, const char *target, generator *generate, const char *about)
{
    fpa_source source;
    fpa_error error = {0};
    int found = 0;
    if (!generate(head, target, &source, &error)) {
        found = check_text(about, source.code, head);
        if (source.header)
            found += check_text(about, source.header, head);
        source_free(&source);
    } else if (!strstr(error.message, "tf32x3")) { /* which is of fp32 alone */
        fail_msg("%s: %s: %s", about, error.where, error.message);
    }
    return found;
}

/* A head for a target, and its gradients: as it is, or (of == FPA_BF16) with narrow operands. */
static int check_head(fpa_head *head, const char *target, fpa_dtype of)
{
    const fpa_dtype own = head->dtype;
    char about[300], gradients[320];
    head->dtype = of;
    snprintf(about, sizeof about, "%s %s%s", head->name, target, of == own ? "" : " bf16");
    snprintf(gradients, sizeof gradients, "gradients of %s", about);
    int found = check_source(head, target, source_generate, about);
    if (!source_check_backward(head, target, NULL))
        found += check_source(head, target, source_generate_backward, gradients);
    head->dtype = own;
    return found;
}

/* One for each mechanism and form, gated and not, normalised and not, of coordinates, features and matrices. */
static const char *const fixed_part[] = {
    "linear_d64",    "linear_d24_v48",  "gated_linear_d32",   "gated_power2_d64",
    "taylor2_d16",   "tspow2_d60_b8",   "tspow2_d32_f16",     "tspow2_d32_bf16_state",
    "tspow3_d16",    "power4_d8",       "mixed_3x7x5",        "dense_16x32_d64",
    "rank1_factors", "trainable_dense", "trainable_diagonal", "tspow2_d64_tf32x3",
};

static void check_target(const char *target)
{
    const bool hopper =
        target_find(target)->warpgroups; /* make test: of it bf16, of others the head's own type */
    int found = 0, checked = 0;
    for (int i = 0; i < heads.count; i++) {
        fpa_head *head = heads.item[i].head;
        if (!dear_tests() && !is_one_of(fixed_part, sizeof fixed_part / sizeof *fixed_part, head->name))
            continue;
        if (dear_tests() || !hopper || head->dtype == FPA_BF16)
            found += check_head(head, target, head->dtype);
        if (head->dtype != FPA_BF16 && (dear_tests() || hopper))
            found += check_head(head, target, FPA_BF16);
        checked++;
    }
    dear_report(target, checked, heads.count);
    assert_true(checked >= (int)(sizeof fixed_part / sizeof *fixed_part));
    assert_int_equal(found, 0);
}

static void c_code_reads_as_hand_written(void **state)
{
    check_target("c:avx512");
}

static void c_code_of_windows_reads_as_hand_written(void **state)
{
    fpa_head_list list = {0};
    fpa_error error;
    assert_int_equal(spec_load("specs/window.lua", &list, &error), FPA_OK);
    for (int i = 0; i < list.count; i++) {
        assert_int_equal(check_head(list.heads[i], "c:avx512", list.heads[i]->dtype), 0);
        assert_int_equal(check_head(list.heads[i], "c:avx512bf16", FPA_BF16), 0);
    }
    head_list_free(&list);
}

static void cuda_code_reads_as_hand_written(void **state)
{
    check_target("cuda:sm_90");
}

static void hopper_code_reads_as_hand_written(void **state)
{
    check_target("cuda:sm_90a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c_code_reads_as_hand_written),
        cmocka_unit_test(c_code_of_windows_reads_as_hand_written),
        cmocka_unit_test(cuda_code_reads_as_hand_written),
        cmocka_unit_test(hopper_code_reads_as_hand_written),
    };
    return cmocka_run_group_tests_name("emit style", tests, load_heads, free_heads);
}
