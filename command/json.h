/* json: writes JSON, member by member. Numbers that JSON does not have become null. */
#ifndef FPAC_COMMAND_JSON_H
#define FPAC_COMMAND_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16 };
typedef struct fpa_json {
    FILE *out;
    int depth;
    char close[JSON_DEPTH]; /* '}' or ']' of each open level */
    bool more[JSON_DEPTH];  /* a member has been written on this level */
} fpa_json;

/* Begin an object; name NULL: as an element of an array, or as the outermost value. */
void json_object(fpa_json *json, const char *name);
void json_array(fpa_json *json, const char *name);
void json_close(fpa_json *json); /* closes the innermost level; with the outermost one the line ends */
void json_text(fpa_json *json, const char *name, const char *text); /* NULL: null */
void json_number(fpa_json *json, const char *name, double value);
void json_integer(fpa_json *json, const char *name, int64_t value);
void json_bool(fpa_json *json, const char *name, bool value);

/* Write a string by itself, quoted. */
void json_write_string(FILE *out, const char *text);

#endif
