/* main: the command `fpac`, with a row for each subcommand. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "command.h"
#include "process_start.h"

static const fpa_command commands[] = {
    {"new", "write a spec to begin with, and arrays to apply it to", command_new},
    {"design", "rank heads whose state fits into a budget by cost and recall", command_design},
    {"explain", "show a head, its simplification, plan and cost", command_explain},
    {"gen", "write sources, shared libraries and cubins ahead of time", command_gen},
    {"verify", "compile heads and compare them with the formula", command_verify},
    {"run", "apply a head to NumPy arrays", command_run},
    {"bench", "measure a head on this machine", command_bench},
    {"plot", "draw measurements", command_plot},
    {"report", "write pages about heads: pictures, costs, kernels, verdict", command_report},
    {"list", "list the heads of specs, or the targets of this build", command_list},
    {"prelude", "print the Lua functions that specs can use", command_prelude},
    {"cache", "show, limit or clear the cache of compiled kernels", command_cache},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_commands(FILE *out)
{
    fprintf(out, "usage: fpac COMMAND [operands and options]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].purpose);
    fprintf(out,
            "\n`fpac COMMAND --help` describes a command. Exit codes: 0 done, 1 failed, 2 wrong command\n"
            "line, 3 a kernel did not agree with the formula and was refused.\n");
}

/* Reports an unknown command; with --json, which no subcommand has parsed here, as JSON without the list of
 * commands. */
static int unknown_command(const char *name, int count, char **arguments)
{
    char advice[64] = "no such command";
    const char *names[COMMANDS + 1] = {NULL};
    for (int i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = nearest_name(name, names);
    fpa_error error = {.code = FPA_INVALID};
    if (nearest)
        snprintf(advice, sizeof advice, "no such command; did you mean %s?", nearest);
    snprintf(error.where, sizeof error.where, "%s", name);
    snprintf(error.message, sizeof error.message, "%s", advice);
    for (int i = 2; i < count && !json_errors(); i++)
        report_as_json(!strcmp(arguments[i], "--json"));
    report(&error);
    if (!json_errors())
        print_commands(stderr);
    return EXIT_USAGE;
}

int main(int count, char **arguments)
{
    open_standard_streams();
    catch_signals();
    if (count < 2) {
        print_commands(stderr);
        return EXIT_USAGE;
    }
    const char *name = arguments[1];
    if (!strcmp(name, "help") && count == 3) { /* help COMMAND */
        char *asked[] = {arguments[2], "--help", NULL};
        for (int i = 0; i < COMMANDS; i++)
            if (!strcmp(asked[0], commands[i].name))
                return commands[i].run(2, asked);
        return unknown_command(asked[0], count, arguments);
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_commands(stdout);
        return finish_output(EXIT_OK);
    }
    if (!strcmp(name, "--version")) {
        printf("fpac %s\n", FPA_VERSION);
        return finish_output(EXIT_OK);
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (!strcmp(name, commands[i].name))
            return commands[i].run(count - 1, arguments + 1);
    }
    return unknown_command(name, count, arguments);
}
