#include "nvrtc_hurry.h"

#include "dear.h"
#include "runtime/cuda/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char variable[] = "FPA_NVRTC_FLAGS";
static bool ours;

/* A process finds its NVRTC once, and the test may want it to find another: a child looks. */
static bool knows_the_option(void)
{
    enum { SINCE = 13 };
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const char *version;
        fpa_error error;
        _exit(nvrtc_find(&version, &error) || atoi(version) < SINCE);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

bool nvrtc_hurry(void)
{
    if (!dear_tests() && !getenv(variable) && knows_the_option())
        ours = setenv(variable, "--Ofast-compile=max", 0) == 0;
    return ours;
}

void nvrtc_hurry_no_more(void)
{
    if (ours)
        unsetenv(variable);
    ours = false;
}
