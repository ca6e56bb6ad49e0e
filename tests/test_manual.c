/* The manual page and the completion of the command tell what `fpac --help` tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "program.h"

static const char *command(void)
{
    return getenv("FPAC") ? getenv("FPAC") : "build/fpac";
}

/* Text as roff wants it: "--head" is "\-\-head" there. */
static void as_roff(const char *text, char *roff, size_t size)
{
    size_t used = 0;
    for (; *text && used + 3 < size; text++) {
        if (*text == '-')
            roff[used++] = '\\';
        roff[used++] = *text;
    }
    roff[used] = '\0';
}

static void expect_in(const char *page, const char *format, const char *word)
{
    char roff[128], wanted[160];
    as_roff(word, roff, sizeof roff);
    snprintf(wanted, sizeof wanted, format, roff);
    if (!strstr(page, wanted))
        fail_msg("the manual lacks '%s'", wanted);
}

/* Every indented line of a help text begins with a subcommand or an option: its first word, to `use`. */
static int each_first_word(const char *help, void (*use)(const char *word, void *user), void *user)
{
    int count = 0;
    for (const char *line = help; line; line = strchr(line, '\n')) {
        char word[64];
        line += *line == '\n';
        if (strncmp(line, "  ", 2) == 0 && sscanf(line, "  %63[a-z-]", word) == 1) {
            use(word, user);
            count++;
        }
    }
    return count;
}

static void expect_option(const char *word, void *page)
{
    expect_in(page, ".B %s", word);
}

static void expect_command(const char *word, void *page)
{
    expect_in(page, ".SS %s\n", word);
    program_result help = RUN("fpac", word, "--help");
    assert_int_equal(help.code, 0);
    assert_true(each_first_word(help.out, expect_option, page) >= 1);
    program_free(&help);
}

static void the_manual_has_every_subcommand_and_option(void **state)
{
    program_result page =
        RUN("/usr/bin/env", "bash", "tools/manual.sh", command(), "1.2.3", "docs/fpac.1.in");
    program_result help = RUN("fpac", "--help");
    assert_int_equal(page.code, 0);
    assert_non_null(strstr(page.out, "\"fpac 1.2.3\""));
    assert_null(strchr(page.out, '@'));
    assert_true(each_first_word(help.out, expect_command, page.out) >= 9);
    program_free(&help);
    program_free(&page);
}

/* What completion offers for a line whose end is the cursor's place, with blanks between; malloc'ed. */
static char *offered(const char *line)
{
    static const char script[] =
        "source command/completion.bash; COMP_LINE=\"$1 $2\"; COMP_POINT=${#COMP_LINE}; "
        "_fpac; echo \" ${COMPREPLY[*]} \"";
    program_result bash = RUN("/usr/bin/env", "bash", "-c", script, "bash", command(), line);
    assert_int_equal(bash.code, 0);
    free(bash.err);
    return bash.out;
}

static void expect_offer(const char *line, const char *with, const char *without)
{
    char *words = offered(line);
    if (with && !strstr(words, with))
        fail_msg("fpac %s: '%s' is not offered, but:%s", line, with, words);
    if (without && strstr(words, without))
        fail_msg("fpac %s: '%s' is offered", line, without);
    free(words);
}

static void expect_completed(const char *word, void *user)
{
    char wanted[80];
    snprintf(wanted, sizeof wanted, " %s ", word);
    expect_offer(user, wanted, NULL);
}

static void completion_knows_subcommands_and_options(void **state)
{
    static char nothing[] = "", options[] = "verify -";
    program_result help = RUN("fpac", "--help"), verify = RUN("fpac", "verify", "--help");
    assert_true(each_first_word(help.out, expect_completed, nothing) >= 9);
    assert_true(each_first_word(verify.out, expect_completed, options) >= 7);
    expect_offer("ver", " verify ", "explain");
    program_free(&verify);
    program_free(&help);
}

static void completion_knows_heads_targets_and_files(void **state)
{
    expect_offer("explain specs/linear.lua --head ", " linear_d64 ", "tspow");
    expect_offer("explain specs/linear.lua --head=", " linear_d64 ",
                 NULL); /* bash keeps what is before the = */
    expect_offer("run x.lua --target c", " cuda ", NULL);
    expect_offer("run x.lua --target c:avx", " avx512 ", "sse2");
    expect_offer("gen x.lua --target c:avx2,c:n", " neon ", " cuda ");
    expect_offer("bench x.lua --dtype ", " bf16 ", NULL);
    expect_offer("verify --time specs/lin", " specs/linear.lua ", "tspow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manual_has_every_subcommand_and_option),
        cmocka_unit_test(completion_knows_subcommands_and_options),
        cmocka_unit_test(completion_knows_heads_targets_and_files),
    };
    return cmocka_run_group_tests_name("manual", tests, NULL, NULL);
}
