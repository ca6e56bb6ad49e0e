#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "command.h"

static int usage_error(const fpa_syntax *syntax, const char *word, const char *problem)
{
    fpa_error error = {.code = FPA_INVALID};
    snprintf(error.where, sizeof error.where, "%s", word);
    snprintf(error.message, sizeof error.message, "%s", problem);
    report(&error);
    if (!json_errors())
        fprintf(stderr, "usage: fpac %s\n", syntax->usage);
    return EXIT_USAGE;
}

int option_missing(const fpa_syntax *syntax, const char *name)
{
    return usage_error(syntax, name, "is needed");
}

int option_conflict(const fpa_syntax *syntax, const char *name, const char *other)
{
    char problem[96];
    snprintf(problem, sizeof problem, "contradicts %s", other);
    return usage_error(syntax, name, problem);
}

int option_needs(const fpa_syntax *syntax, const char *name, const char *other)
{
    char problem[96];
    snprintf(problem, sizeof problem, "needs %s, which is not given", other);
    return usage_error(syntax, name, problem);
}

static void print_option(const fpa_option *option)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", option->name, option->operand ? " " : "",
             option->operand ? option->operand : "");
    printf("  %-24s %s\n", left, option->help);
}

static int print_help(const fpa_syntax *syntax)
{
    printf("usage: fpac %s\n\n%s\n\noptions:\n", syntax->usage, syntax->purpose);
    for (int i = 0; i < syntax->option_count; i++)
        print_option(&syntax->options[i]);
    printf("  %-24s %s\n", "--help", "this text");
    if (syntax->notes)
        printf("\n%s\n", syntax->notes);
    return finish_output(EXIT_OK);
}

/* The option that argument names, up to a '='; *attached is the text after the '=', or NULL. */
static const fpa_option *find_option(const fpa_syntax *syntax, const char *argument, const char **attached)
{
    size_t length = strcspn(argument, "=");
    *attached = argument[length] ? argument + length + 1 : NULL;
    for (int i = 0; i < syntax->option_count; i++) {
        const char *name = syntax->options[i].name;
        if (strlen(name) == length && !memcmp(name, argument, length))
            return &syntax->options[i];
    }
    return NULL;
}

static bool set_count(const fpa_option *option, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < option->least || value > option->most)
        return false;
    *(int64_t *)option->value = value;
    return true;
}

static bool add_text(fpa_texts *texts, const char *text)
{
    if (texts->count == MANY_TEXTS)
        return false;
    texts->text[texts->count++] = text;
    return true;
}

/* Sets the option's value. Returns what is wrong with it, or NULL. */
static const char *set_value(const fpa_option *option, const char *text)
{
    static _Thread_local char range[96];
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)option->value = true;
        return NULL;
    case OPTION_TEXT:
        *(const char **)option->value = text;
        return NULL;
    case OPTION_COUNT:
        snprintf(range, sizeof range, "needs a whole number from %lld to %lld", (long long)option->least,
                 (long long)option->most);
        return set_count(option, text) ? NULL : range;
    case OPTION_MANY:
        return add_text(option->value, text) ? NULL : "is given too often";
    }
    return NULL;
}

/* The message for an unknown option, with the one that may be meant. */
static const char *unknown_option(const fpa_syntax *syntax, const char *argument)
{
    enum { MOST_OPTIONS = 63 };
    static _Thread_local char problem[96];
    const char *names[MOST_OPTIONS + 2];
    char word[64];
    int count = 0;
    for (int i = 0; i < syntax->option_count && i < MOST_OPTIONS; i++)
        names[count++] = syntax->options[i].name;
    names[count++] = "--help";
    names[count] = NULL;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(argument, "="), argument);
    const char *nearest = nearest_name(word, names);
    snprintf(problem, sizeof problem, nearest ? "no such option; did you mean %s?" : "no such option",
             nearest);
    return problem;
}

/* Parses the option at arguments[*at], its value included. Returns what is wrong, or NULL. */
static const char *parse_option(const fpa_syntax *syntax, int count, char **arguments, int *at)
{
    const char *attached;
    const fpa_option *option = find_option(syntax, arguments[*at], &attached);
    if (!option)
        return unknown_option(syntax, arguments[*at]);
    if (option->kind == OPTION_FLAG)
        return attached ? "takes no value" : set_value(option, NULL);
    if (!attached && ++*at < count)
        attached = arguments[*at];
    return attached && *attached ? set_value(option, attached) : "needs a value";
}

static bool check_operands(const fpa_syntax *syntax, const char *name, const fpa_texts *operands, int *code)
{
    if (operands->count < syntax->least) {
        *code = usage_error(syntax, name, "too few operands");
        return false;
    }
    if (syntax->most >= 0 && operands->count > syntax->most) {
        *code = usage_error(syntax, operands->text[syntax->most], "one operand too many");
        return false;
    }
    return true;
}

/* Whether the line contains --json, so that its errors are reported as JSON, too. */
static bool wants_json(const fpa_syntax *syntax, int count, char **arguments)
{
    const char *attached;
    bool wanted = false;
    for (int at = 1; at < count && strcmp(arguments[at], "--") != 0; at++)
        wanted = wanted || !strcmp(arguments[at], "--json");
    return wanted && find_option(syntax, "--json", &attached);
}

bool options_parse(const fpa_syntax *syntax, int count, char **arguments, fpa_texts *operands, int *code)
{
    report_as_json(wants_json(syntax, count, arguments));
    bool options_end = false;
    operands->count = 0;
    for (int at = 1; at < count; at++) {
        const char *argument = arguments[at], *problem = NULL;
        if (!options_end && !strcmp(argument, "--")) {
            options_end = true;
        } else if (!options_end && (!strcmp(argument, "--help") || !strcmp(argument, "-h"))) {
            *code = print_help(syntax);
            return false;
        } else if (options_end || argument[0] != '-' || !argument[1]) {
            problem = add_text(operands, argument) ? NULL : "too many operands";
        } else {
            problem = parse_option(syntax, count, arguments, &at);
        }
        if (problem) {
            *code = usage_error(syntax, argument, problem);
            return false;
        }
    }
    return check_operands(syntax, arguments[0], operands, code);
}
