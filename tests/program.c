#include "program.h"
#include "claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program_path(const char *name)
{
    const char *command = getenv("FPAC");
    if (strcmp(name, "fpac"))
        return name;
    return command ? command : "build/fpac";
}

static char *read_all(FILE *file, size_t *size)
{
    fseek(file, 0, SEEK_END);
    long end = ftell(file);
    rewind(file);
    char *text = malloc((size_t)end + 1);
    assert_non_null(text);
    *size = fread(text, 1, (size_t)end, file);
    text[*size] = 0;
    return text;
}

/* In the child: a cache of the tests' own, never the user's. */
static void become(const char *const *arguments, FILE *out, FILE *err)
{
    setenv("FPA_CACHE_DIR", "build/tests/cache", 0);
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    execv(program_path(arguments[0]), (char *const *)(uintptr_t)arguments);
    _exit(127);
}

program_result program_run(const char *const *arguments)
{
    FILE *out = tmpfile(), *err = tmpfile();
    assert_non_null(out);
    assert_non_null(err);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become(arguments, out, err);
    assert_true(child > 0);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    size_t size;
    program_result result = {
        .code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
        .out = read_all(out, &size),
        .err = read_all(err, &size),
    };
    fclose(out);
    fclose(err);
    assert_int_not_equal(result.code, 127);
    return result;
}

void program_free(program_result *result)
{
    free(result->out);
    free(result->err);
}

void text_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

char *text_read(const char *path, size_t *size)
{
    size_t unused;
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    char *text = read_all(file, size ? size : &unused);
    fclose(file);
    return text;
}

bool program_runs(int pid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    const char *name_end = got ? strrchr(line, ')') : NULL;
    return name_end && name_end[2] != 'Z' && name_end[2] != 'X';
}
