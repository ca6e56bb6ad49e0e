#include "patience.h"
#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PROCESSES = 4096, LOOK_SECONDS = 1, LOADED = 20 };

struct process {
    int id, parent;
    double own, children; /* ticks: its own, those of its children that have ended */
    bool below;           /* the caller */
};

/* Of /proc/ID/stat; the name in it, in parentheses, may have anything. */
static bool read_process(const char *id, struct process *process)
{
    char path[64], text[1024];
    double user, kernel, children_user, children_kernel;
    snprintf(path, sizeof path, "/proc/%.20s/stat", id);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    const char *behind = strrchr(text, ')');
    if (!behind || sscanf(behind + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lf %lf %lf %lf",
                          &process->parent, &user, &kernel, &children_user, &children_kernel) != 5)
        return false;
    process->id = atoi(id);
    process->own = user + kernel;
    process->children = children_user + children_kernel;
    process->below = false;
    return true;
}

static int list_processes(struct process *all)
{
    DIR *list = opendir("/proc");
    int count = 0;
    if (!list)
        return 0;
    for (struct dirent *item = readdir(list); item && count < MOST_PROCESSES; item = readdir(list))
        if (isdigit((unsigned char)*item->d_name) && read_process(item->d_name, &all[count]))
            count++;
    closedir(list);
    return count;
}

/* Whose parent is the caller, or below it. */
static void mark_below(struct process *all, int count, int caller)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count && !all[i].below; j++)
                if (all[i].parent == caller || (all[j].below && all[i].parent == all[j].id))
                    all[i].below = more = true;
    }
}

/* Seconds that the caller's children have used of the cores, and theirs. */
static double used_below(void)
{
    static struct process all[MOST_PROCESSES];
    const int caller = getpid(), count = list_processes(all);
    double ticks = 0;
    mark_below(all, count, caller);
    for (int i = 0; i < count; i++)
        ticks += all[i].id == caller ? all[i].children : all[i].below ? all[i].own + all[i].children : 0;
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

struct patience patience_for(double seconds)
{
    const double time = clock_seconds(), used = used_below();
    return (struct patience){seconds, time, time, time, used, used};
}

bool patience_is_over(struct patience *p)
{
    const double time = clock_seconds();
    if (time - p->looked < LOOK_SECONDS)
        return false;
    const double used = used_below();
    if (used > p->used)
        p->moved = time;
    p->looked = time;
    p->used = used;
    return used - p->began > p->seconds || time - p->moved > p->seconds ||
           time - p->start > LOADED * p->seconds;
}
