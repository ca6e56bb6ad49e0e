#include "xml.h"
#include "claims.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { DEPTH = 24, NAME = 32 };

typedef struct reader {
    const char *at;
    int depth;
    char open[DEPTH][NAME];
} reader;

static void read_name(reader *r, char name[NAME])
{
    size_t size = strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:");
    assert_in_range(size, 1, NAME - 1);
    memcpy(name, r->at, size);
    name[size] = 0;
    r->at += size;
}

/* Up to the end character, or to a tag when that is 0; an & begins one of the five entities, or a number. */
static void read_characters(reader *r, char end)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#"};
    while (*r->at && *r->at != end && *r->at != '<') {
        bool known = *r->at != '&';
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
            known = known || !strncmp(r->at, entities[i], strlen(entities[i]));
        if (!known)
            fail_msg("an & that begins no entity: %.40s", r->at);
        r->at++;
    }
}

static void read_attributes(reader *r)
{
    char name[NAME];
    while (isspace((unsigned char)*r->at)) {
        r->at += strspn(r->at, " \n");
        read_name(r, name);
        assert_int_equal(strncmp(r->at, "=\"", 2), 0);
        r->at += 2;
        read_characters(r, '"');
        assert_int_equal(*r->at++, '"');
    }
}

static void read_tag(reader *r)
{
    char name[NAME];
    bool closes = r->at[1] == '/';
    r->at += closes ? 2 : 1;
    read_name(r, name);
    if (closes) {
        assert_in_range(r->depth, 1, DEPTH);
        assert_string_equal(name, r->open[--r->depth]);
    } else {
        read_attributes(r);
        bool empty = *r->at == '/';
        r->at += empty;
        assert_in_range(r->depth, 0, DEPTH - 1);
        if (!empty)
            strcpy(r->open[r->depth++], name);
    }
    assert_int_equal(*r->at++, '>');
}

void expect_xml(const char *text)
{
    reader r = {.at = text};
    do {
        read_tag(&r);
        read_characters(&r, 0);
    } while (r.depth > 0);
    assert_string_equal(r.at, "");
}
