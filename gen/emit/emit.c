#include "emit.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "gen/backends.h"
#include "gen/embedded.h"
#include "table.h"
#include "template.h"

static const char *find_template(const char *name)
{
    for (const struct fpa_embedded_file *file = fpa_embedded_templates; file->name; file++)
        if (!strcmp(file->name, name))
            return file->text;
    return NULL;
}

/* ---- the plan as a Lua table ---- */

static const fpa_field head_fields[] = {
    FIELD(fpa_head, name), FIELD(fpa_head, d),   FIELD(fpa_head, dv),    FIELD(fpa_head, causal),
    FIELD(fpa_head, gate), FIELD(fpa_head, eps), FIELD(fpa_head, scale), FIELDS_END};

static const fpa_field plan_fields[] = {FIELD(fpa_plan, features), FIELD_AS(fpa_plan, "uses_weights", weighs),
                                        FIELD(fpa_plan, chunk), FIELDS_END};

/* The factor that turns the dot of a packed query and a key into the exponent scale q.k of a head with a window:
 * not 1 if simplification has moved the scale of queries into weights. */
static double exponent_factor(const fpa_plan *plan)
{
    const bool packed = plan->written->lift || plan->head->scale == plan->written->scale;
    return packed ? 1 : plan->written->scale / plan->head->scale;
}

static void push_head(lua_State *L, const fpa_plan *plan)
{
    const fpa_head *head = plan->head;
    set_fields(L, head_fields, head);
    set_fields(L, plan_fields, plan);
    set_string(L, "target", plan->target->name);
    set_boolean(L, "backward", plan->backward);
    set_boolean(L, "normalized", head->normalize != FPA_NORMALIZE_NONE);
    set_string(L, "normalize", normalize_name(head->normalize));
    set_string(L, "dtype", dtype_name(head->dtype));
    set_string(L, "state_dtype", dtype_name(head->state_dtype));
    set_integer(L, "window", plan->written->window);
    lua_pushnumber(L, exponent_factor(plan));
    lua_setfield(L, -2, "window_factor");
    set_integer(L, "given_width", head_width(plan->written));
    lua_pushnumber(L, plan->written->scale);
    lua_setfield(L, -2, "given_scale");
}

/* plan: the fields that the back end describes, and the values that it computes. */
static void push_plan(lua_State *L, const fpa_plan *plan)
{
    const fpa_generator *generator = generator_of(plan->target);
    fpa_field_set set;
    for (int i = 0; generator->fields(plan, i, &set); i++)
        set_field_set(L, &set);
    generator->push(L, plan);
}

/* ---- texts ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The spec's file name without folder and line, so that the text does not depend on where the spec is stored. */
static void push_origin(lua_State *L, const fpa_head *written)
{
    const char *file = base_name(written->origin ? written->origin : "a program");
    const char *colon = strrchr(file, ':');
    lua_pushlstring(L, file, colon ? (size_t)(colon - file) : strlen(file));
    lua_setfield(L, -2, "origin");
}

enum { MAX_LINES = 48, MAX_LINE = 100, SHORT_TERM = 10 };

/* A text as a table of lines: lines longer than MAX_LINE are cut, and lines after the first MAX_LINES omitted. */
static void set_lines(lua_State *L, const char *field, const char *text)
{
    int count = 0;
    lua_newtable(L);
    while (*text && count < MAX_LINES) {
        const char *end = strchrnul(text, '\n');
        size_t size = (size_t)(end - text);
        if (size > MAX_LINE)
            lua_pushfstring(L, "%s ...", lua_pushlstring(L, text, MAX_LINE)), lua_remove(L, -2);
        else
            lua_pushlstring(L, text, size);
        lua_rawseti(L, -2, ++count);
        text = *end ? end + 1 : end;
    }
    if (*text) {
        lua_pushliteral(L, "...");
        lua_rawseti(L, -2, count + 1);
    }
    lua_setfield(L, -2, field);
}

static void print_term(FILE *out, const fpa_head *head, const fpa_term *term, double first)
{
    fprintf(out, "%.0f..%.0f:", first, first + term_features(term) - 1);
    if (!number_is_one(term->weight) || !term->branch_count) {
        char weight[NUMBER_TEXT];
        number_print(weight, term->weight);
        fprintf(out, " %s", weight);
    }
    for (int b = 0; b < term->branch_count; b++) {
        const fpa_branch *branch = &term->branches[b];
        const char *name = branch->source == FPA_INPUT ? "x" : head->matrices[branch->source].name;
        if (name)
            fprintf(out, " %s[", name);
        else
            fprintf(out, " W%d[", branch->source + 1);
        text_rows(out, branch->row, branch->width);
        fprintf(out, branch->gram ? "] weighted" : "]");
    }
}

/* Joins consecutive lines as long as they fit into MAX_LINE. */
static void join_lines(char *text)
{
    const char *start = text;
    for (char *end = strchr(text, '\n'); end; end = strchr(end + 1, '\n')) {
        if (strchrnul(end + 1, '\n') - start <= MAX_LINE)
            *end = ' ';
        else
            start = end + 1;
    }
}

/* The terms, each in a line of its own; if there are more than MAX_LINES, several in a line. */
static char *feature_text(const fpa_head *head)
{
    const bool many = head->term_count > MAX_LINES;
    text_buffer buffer;
    FILE *out = text_open(&buffer);
    if (!out)
        return NULL;
    double first = 0;
    for (int t = 0; t < head->term_count && t <= MAX_LINES * MAX_LINE / SHORT_TERM; t++) {
        if (t)
            fputs(many ? ",\n" : "\n", out);
        print_term(out, head, &head->terms[t], first);
        first += term_features(&head->terms[t]);
    }
    char *text = text_finish(&buffer);
    if (text && many)
        join_lines(text);
    return text;
}

static void push_summary(lua_State *L, const fpa_plan *plan)
{
    const fpa_facts *facts = &plan->facts;
    enum { WIDEST = 120 };
    char text[320], minimum[80], lifted[64] = "";
    if (plan->written->lift)
        snprintf(lifted, sizeof lifted, "width %d lifted to ", head_width(plan->written));
    snprintf(text, sizeof text, "%sd = %d, dv = %d, %s%s%s, D = %" PRId64 " features", lifted, plan->head->d,
             plan->head->dv, plan->head->causal ? "causal" : "not causal",
             plan->head->normalize ? ", normalised" : "", plan->head->gate ? ", gated" : "", facts->features);
    snprintf(minimum, sizeof minimum, "(%" PRId64 " as written, exact minimum %" PRId64 ")",
             facts->features_written, facts->features_minimum);
    const bool wide =
        strlen(plan->head->name) + strlen("/* : gradients of ") + strlen(text) + strlen(minimum) >= WIDEST;
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", wide ? "\n * " : " ", minimum);
    set_string(L, "summary", text);
    char recurrent[48] = "";
    if (facts->forms & 1 << FORM_RECURRENT)
        snprintf(recurrent, sizeof recurrent, " recurrent %.0f,", facts->flop[FORM_RECURRENT]);
    snprintf(text, sizeof text, "Cost: chunked %.0f FLOP a token (chunk %d),%s parallel %.0f a visible pair.",
             facts->flop[FORM_CHUNKED], facts->chunk, recurrent, facts->flop[FORM_PARALLEL]);
    set_string(L, "cost", text);
}

/* ---- emission, run protected ---- */

struct emission {
    const fpa_plan *plan;
    const fpa_head *written;
    const char *head_text, *features, *digest;
    const struct fpa_fault *fault;
};

static int strict_index(lua_State *L)
{
    return luaL_error(L, "a template uses '%s', which is not set", luaL_tolstring(L, 2, NULL));
}

/* Reading a field that does not exist is an error, in given tables and among globals. */
static void make_strict(lua_State *L)
{
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, strict_index);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

static int prepare(lua_State *L)
{
    const struct emission *e = lua_touserdata(L, 1);
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    lua_createtable(L, 0, 48);
    push_head(L, e->plan);
    push_plan(L, e->plan);
    push_lift(L, e->written);
    push_origin(L, e->written);
    push_summary(L, e->plan);
    set_string(L, "digest", e->digest);
    set_string(L, "file", e->plan->head->name);
    set_lines(L, "head_lines", e->head_text);
    set_lines(L, "feature_lines", e->features);
    make_strict(L);
    lua_setglobal(L, "plan");
    lua_pushglobaltable(L);
    make_strict(L);
    return 0;
}

static fpa_status run_templates(const struct emission *e, char **code, char **header, fpa_error *error)
{
    bool no_memory;
    lua_State *L = template_state(&no_memory);
    if (!L)
        return fail_memory(error);
    const fpa_generator *generator = generator_of(e->plan->target);
    const bool backward = e->plan->backward;
    const char *of_header = backward ? generator->backward_header : generator->header;
    fpa_status status = FPA_OK;
    /* the state exists for one text, and nearly everything in it is used until the end */
    lua_gc(L, LUA_GCSTOP);
    lua_pushcfunction(L, prepare);
    lua_pushlightuserdata(L, (void *)e);
    int prepared = lua_pcall(L, 1, 0, 0);
    if (prepared == LUA_ERRMEM || (prepared != LUA_OK && no_memory))
        status = fail_memory(error);
    else if (prepared != LUA_OK)
        status = fail(error, FPA_INVALID, "emit", "%s", lua_tostring(L, -1));
    else
        status = template_run(L, find_template, backward ? generator->backward : generator->code, e->fault,
                              code, error);
    if (!status && of_header)
        status = template_run(L, find_template, of_header, e->fault, header, error);
    lua_close(L);
    return status;
}

fpa_status emit_faulty(const fpa_plan *plan, const fpa_head *written, const struct fpa_fault *fault,
                       char **code, char **header, fpa_error *error)
{
    char digest[DIGEST_TEXT];
    char *head_text = head_print(written), *features = feature_text(plan->head);
    *code = *header = NULL;
    fpa_status status = head_digest(written, digest, error);
    if (!status && (!head_text || !features))
        status = fail_memory(error);
    if (!status) {
        struct emission e = {plan, written, head_text, features, digest, fault};
        status = run_templates(&e, code, header, error);
    }
    if (status) {
        free(*code);
        free(*header);
        *code = *header = NULL;
    }
    free(head_text);
    free(features);
    return status;
}

fpa_status emit_source(const fpa_plan *plan, const fpa_head *written, char **code, char **header,
                       fpa_error *error)
{
    return emit_faulty(plan, written, NULL, code, header, error);
}
