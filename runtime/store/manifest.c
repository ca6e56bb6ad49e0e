#include "manifest.h"
#include "base/plain_locale.h"
#include "base/text.h"
#include "lines.h"
#include "manifest_layers.h"

#include <ctype.h>
#include <math.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The facts, a row for each line; printer and parser use the same table. */
typedef enum field_type { WHOLE, NUMBER, SMALL, DTYPE } field_type;

static const struct field {
    const char *name;
    size_t offset; /* offset in fpa_facts */
    field_type type;
} fields[] = {
    {"arithmetic", offsetof(fpa_facts, arithmetic), DTYPE},
    {"features", offsetof(fpa_facts, features), WHOLE},
    {"features_written", offsetof(fpa_facts, features_written), WHOLE},
    {"features_minimum", offsetof(fpa_facts, features_minimum), WHOLE},
    {"features_tpow", offsetof(fpa_facts, features_tpow), WHOLE},
    {"state_elements", offsetof(fpa_facts, state_elements), WHOLE},
    {"block", offsetof(fpa_facts, block), SMALL},
    {"chunk", offsetof(fpa_facts, chunk), SMALL},
    {"formed", offsetof(fpa_facts, formed), SMALL},
    {"forms", offsetof(fpa_facts, forms), SMALL},
    {"crossover", offsetof(fpa_facts, crossover), WHOLE},
    {"flop_parallel", offsetof(fpa_facts, flop[FORM_PARALLEL]), NUMBER},
    {"flop_chunked", offsetof(fpa_facts, flop[FORM_CHUNKED]), NUMBER},
    {"flop_recurrent", offsetof(fpa_facts, flop[FORM_RECURRENT]), NUMBER},
    {"state_bytes", offsetof(fpa_facts, state_bytes), NUMBER},
};

static const char *const file_words[MANIFEST_FILES] = {
    [MANIFEST_HEAD] = "head",
    [MANIFEST_CODE] = "code",
    [MANIFEST_HEADER] = "header",
    [MANIFEST_OBJECT] = "object",
    [MANIFEST_PTX] = "ptx",
    [MANIFEST_BACKWARD_CODE] = "backward_code",
    [MANIFEST_BACKWARD_HEADER] = "backward_header",
    [MANIFEST_BACKWARD_OBJECT] = "backward_object",
    [MANIFEST_BACKWARD_PTX] = "backward_ptx",
};

/* An entry begins with facts, and so does the part of its gradients. */
static const char entry_word[] = "entry", backward_word[] = "backward";

static const char last_word[] = "sha256";
static const char first_line[] = "fpac-bundle 10";

enum { FIELDS = sizeof fields / sizeof *fields, MAX_ENTRIES = 1 << 16 };

void manifest_digest(const void *bytes, size_t size, char digest[DIGEST_TEXT])
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, bytes, size);
    SHA256End(&sha, digest);
}

void manifest_free(fpa_manifest *manifest)
{
    free(manifest->entries);
    free(manifest->layers);
    *manifest = (fpa_manifest){0};
}

static void print_field(FILE *text, const struct field *field, const fpa_facts *facts)
{
    const void *value = (const char *)facts + field->offset;
    if (field->type == WHOLE)
        fprintf(text, "%s %lld\n", field->name, (long long)*(const int64_t *)value);
    else if (field->type == SMALL)
        fprintf(text, "%s %d\n", field->name, *(const int *)value);
    else if (field->type == DTYPE)
        fprintf(text, "%s %s\n", field->name, dtype_name(*(const fpa_dtype *)value));
    else
        fprintf(text, "%s %a\n", field->name, *(const double *)value);
}

static void print_titled(FILE *text, const char *word, const fpa_facts *facts)
{
    fprintf(text, "%s %s %s\n", word, facts->name, facts->target);
    for (int f = 0; f < FIELDS; f++)
        print_field(text, &fields[f], facts);
}

static void print_facts(FILE *text, const void *facts)
{
    print_titled(text, entry_word, facts);
}

static void print_files(FILE *text, const fpa_bundle_entry *entry, int first, int end)
{
    for (int f = first; f < end; f++)
        if (entry->files[f].name[0])
            fprintf(text, "%s %s %s\n", file_words[f], entry->files[f].name, entry->files[f].digest);
}

static void print_entry(FILE *text, const fpa_bundle_entry *entry)
{
    print_facts(text, &entry->facts);
    print_files(text, entry, MANIFEST_HEAD, MANIFEST_BACKWARD_CODE);
    if (entry->backward) {
        print_titled(text, backward_word, &entry->backward_facts);
        print_files(text, entry, MANIFEST_BACKWARD_CODE, MANIFEST_FILES);
    }
    fprintf(text, "end\n");
}

static void print_manifest(FILE *text, const void *manifest)
{
    const fpa_manifest *m = manifest;
    fprintf(text, "%s\nentries %d\n", first_line, m->count);
    for (int i = 0; i < m->count; i++)
        print_entry(text, &m->entries[i]);
    layers_print(text, m);
}

/* The text that a function prints, malloc'ed; NULL: no memory. */
static char *printed(void (*print)(FILE *text, const void *what), const void *what)
{
    text_buffer buffer;
    FILE *text = text_open(&buffer);
    if (!text)
        return NULL;
    const locale_t before = locale_plain();
    print(text, what);
    locale_restore(before);
    return text_finish(&buffer);
}

/* The last line is the digest of all before it, so that changed facts are not accepted. */
char *manifest_print(const fpa_manifest *manifest)
{
    char digest[DIGEST_TEXT], *text = NULL, *body = printed(print_manifest, manifest);
    if (!body)
        return NULL;
    manifest_digest(body, strlen(body), digest);
    size_t size = strlen(body) + sizeof last_word + DIGEST_TEXT + 1;
    text = malloc(size);
    if (text)
        snprintf(text, size, "%s%s %s\n", body, last_word, digest);
    free(body);
    return text;
}

char *facts_print(const fpa_facts *facts)
{
    return printed(print_facts, facts);
}

static bool parse_number(const char *text, double *value)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    const locale_t before = locale_plain();
    *value = strtod(text, &end);
    locale_restore(before);
    return *end == 0 && isfinite(*value);
}

static bool parse_dtype(const char *text, fpa_dtype *value)
{
    for (int dtype = 0; dtype < FPA_DTYPES; dtype++)
        if (strcmp(text, dtype_name((fpa_dtype)dtype)) == 0) {
            *value = (fpa_dtype)dtype;
            return true;
        }
    return false;
}

static bool parse_value(const struct field *field, const char *text, fpa_facts *facts)
{
    void *value = (char *)facts + field->offset;
    int64_t whole;
    if (field->type == NUMBER)
        return parse_number(text, value);
    if (field->type == DTYPE)
        return parse_dtype(text, value);
    if (!whole_parse(text, field->type == SMALL ? INT32_MAX : INT64_MAX, &whole))
        return false;
    if (field->type == SMALL)
        *(int *)value = (int)whole;
    else
        *(int64_t *)value = whole;
    return true;
}

static fpa_status parse_field(fpa_lines *r, const struct field *field, fpa_facts *facts)
{
    char wanted[64];
    char *text = lines_next(r) ? lines_after(r, field->name) : NULL;
    if (text && parse_value(field, text, facts))
        return FPA_OK;
    snprintf(wanted, sizeof wanted, "%s %s", field->name, field->type == DTYPE ? "TYPE" : "NUMBER");
    return lines_refuse(r, wanted);
}

static bool parse_file(fpa_lines *r, int kind, fpa_bundle_file *file)
{
    char *name, *digest;
    return words_split(lines_after(r, file_words[kind]), &name, &digest) && is_plain_name(name) &&
           is_digest(digest) && word_copy(file->name, sizeof file->name, name) &&
           word_copy(file->digest, sizeof file->digest, digest);
}

/* Reads the lines of files `first` to `end` - 1, in this order; those after `needed` may be missing. Stops at
 * the first line that is not a file's; *fine: there is such a line. */
static fpa_status parse_files(fpa_lines *r, int first, int needed, int end, fpa_bundle_entry *entry,
                              bool *fine)
{
    char wanted[64];
    *fine = lines_next(r);
    for (int f = first; f < end; f++) {
        if (f > needed && !(*fine && lines_after(r, file_words[f])))
            continue;
        if (!*fine || !parse_file(r, f, &entry->files[f])) {
            snprintf(wanted, sizeof wanted, "%s FILE SHA256", file_words[f]);
            return lines_refuse(r, wanted);
        }
        *fine = lines_next(r);
    }
    return FPA_OK;
}

/* Parses "word NAME TARGET" in the current line. */
static bool parse_title(fpa_lines *r, const char *word, fpa_facts *facts)
{
    char *name, *target;
    return words_split(lines_after(r, word), &name, &target) && is_plain_name(name) &&
           word_copy(facts->name, sizeof facts->name, name) &&
           word_copy(facts->target, sizeof facts->target, target);
}

/* Reads the facts from the current line (if `whole` says that there is one) and the lines after it. */
static fpa_status parse_facts(fpa_lines *r, bool whole, const char *word, fpa_facts *facts)
{
    char wanted[64];
    fpa_status status = FPA_OK;
    if (!whole || !parse_title(r, word, facts)) {
        snprintf(wanted, sizeof wanted, "%s NAME TARGET", word);
        return lines_refuse(r, wanted);
    }
    for (int f = 0; !status && f < FIELDS; f++)
        status = parse_field(r, &fields[f], facts);
    return status;
}

fpa_status facts_parse(const char *where, const char *text, fpa_facts *facts, const char **rest,
                       fpa_error *error)
{
    fpa_lines r = {.where = where, .next = text, .error = error};
    *facts = (fpa_facts){0};
    const bool whole = lines_next(&r);
    fpa_status status = parse_facts(&r, whole, entry_word, facts);
    *rest = r.next;
    return status;
}

/* Reads the part of an entry's gradients, if there is one; its first line must name the entry's head and target. */
static fpa_status parse_backward(fpa_lines *r, fpa_bundle_entry *entry, bool *fine)
{
    char wanted[HEAD_MAX_NAME + 64];
    snprintf(wanted, sizeof wanted, "%s %s %s", backward_word, entry->facts.name, entry->facts.target);
    if (strcmp(r->line, wanted) != 0)
        return lines_refuse(r, wanted);
    entry->backward = true;
    fpa_status status = parse_facts(r, true, backward_word, &entry->backward_facts);
    return status
               ? status
               : parse_files(r, MANIFEST_BACKWARD_CODE, MANIFEST_BACKWARD_CODE, MANIFEST_FILES, entry, fine);
}

/* Reads an entry: facts, files, those of gradients if there are any, "end". */
static fpa_status parse_entry(fpa_lines *r, fpa_bundle_entry *entry)
{
    bool fine = lines_next(r);
    fpa_status status = parse_facts(r, fine, entry_word, &entry->facts);
    if (!status)
        status = parse_files(r, MANIFEST_HEAD, MANIFEST_CODE, MANIFEST_BACKWARD_CODE, entry, &fine);
    if (!status && fine && lines_after(r, backward_word))
        status = parse_backward(r, entry, &fine);
    if (status)
        return status;
    return fine && strcmp(r->line, "end") == 0 ? FPA_OK : lines_refuse(r, "end");
}

/* Reads the number of entries. An entry has more than 16 bytes of text, so a number that the text cannot contain
 * is refused before memory is allocated. */
static fpa_status parse_count(fpa_lines *r, size_t size, fpa_manifest *manifest)
{
    int64_t count = 0;
    if (!lines_next(r) || strcmp(r->line, first_line) != 0)
        return lines_refuse(r, first_line);
    char *text = lines_next(r) ? lines_after(r, "entries") : NULL;
    if (!text || !whole_parse(text, MAX_ENTRIES, &count) || (size_t)count > size / 16)
        return lines_refuse(r, "entries NUMBER");
    manifest->entries = calloc((size_t)count + 1, sizeof *manifest->entries);
    manifest->count = (int)count;
    return manifest->entries ? FPA_OK : fail_memory(r->error);
}

/* Reads "sha256 DIGEST"; check_spelling compares it with the digest of the lines before. */
static fpa_status parse_digest(fpa_lines *r)
{
    const char *listed = lines_next(r) ? lines_after(r, last_word) : NULL;
    return listed && is_digest(listed) ? FPA_OK : lines_refuse(r, "sha256 SHA256");
}

static fpa_status refuse_line(const fpa_lines *r, const char *wanted)
{
    if (strncmp(wanted, last_word, strlen(last_word)) != 0)
        return lines_refuse(r, wanted);
    return fail(r->error, FPA_INVALID, r->where,
                "was changed after it was written (its SHA-256 differs); write the bundle again");
}

/* A manifest has exactly one spelling: prints what was read and compares, which refuses other spellings of a
 * number ("007") and facts that do not match the digest. */
static fpa_status check_spelling(const char *text, const fpa_manifest *manifest, fpa_lines *r)
{
    char *ours = manifest_print(manifest);
    if (!ours)
        return fail_memory(r->error);
    const char *theirs = text, *line = ours;
    r->next = text;
    r->number = 0;
    fpa_status status = FPA_OK;
    while (!status && *line) {
        size_t length = strcspn(line, "\n");
        lines_next(r);
        if (strncmp(theirs, line, length + 1) != 0) {
            char wanted[LINES_MOST];
            snprintf(wanted, sizeof wanted, "%.*s", (int)(length < 200 ? length : 200), line);
            status = refuse_line(r, wanted);
        }
        line += length + 1;
        theirs = r->next;
    }
    free(ours);
    return status;
}

fpa_status manifest_parse(const char *where, const char *text, size_t size, fpa_manifest *manifest,
                          fpa_error *error)
{
    fpa_lines r = {.where = where, .next = text, .error = error};
    *manifest = (fpa_manifest){0};
    if (strlen(text) != size)
        return fail(error, FPA_INVALID, where, "has a zero byte; it is no manifest");
    fpa_status status = parse_count(&r, size, manifest);
    for (int i = 0; !status && i < manifest->count; i++)
        status = parse_entry(&r, &manifest->entries[i]);
    if (!status)
        status = layers_parse(&r, size, manifest);
    if (!status)
        status = parse_digest(&r);
    if (!status && *r.next) {
        lines_next(&r);
        status = lines_refuse(&r, "the end of the file");
    }
    if (!status)
        status = check_spelling(text, manifest, &r);
    if (status)
        manifest_free(manifest);
    return status;
}
