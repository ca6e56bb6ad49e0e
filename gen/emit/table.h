/* emit_table: putting a plan's fields into the Lua table that templates read. Private to emit*.c. */
#ifndef FPAC_GEN_EMIT_TABLE_H
#define FPAC_GEN_EMIT_TABLE_H

#include <lua.h>

#include "emit.h"

/* Copy the fields of a struct into the table on top of the stack, by their description. Doubles remain Lua floats
 * even if they are whole numbers: templates print them with flt(). */
void set_fields(lua_State *L, const fpa_field *fields, const void *of);
/* The same into the table that set->table names. */
void set_field_set(lua_State *L, const fpa_field_set *set);

/* Set one field of the table on top of the stack. */
void set_integer(lua_State *L, const char *field, lua_Integer value);
void set_string(lua_State *L, const char *field, const char *value);
void set_boolean(lua_State *L, const char *field, bool value);
void push_integers(lua_State *L, const int *values, int count);

/* Push one entry of plan.projections. */
void push_projection(lua_State *L, const fpa_head *head, const fpa_projection *projection, const int *row);
/* Set plan.projections, plan.weighted and plan.monomials. row: the places of packed rows; NULL: those of the plan. */
void push_projections(lua_State *L, const fpa_plan *plan, const int *row);
void push_monomials(lua_State *L, const fpa_plan *plan);
/* Set plan.trainable: the run-time matrices in the order of a launch, used or not. */
void push_trainable(lua_State *L, const fpa_head *written);
/* Set plan.lift, of the head as written. */
void push_lift(lua_State *L, const fpa_head *written);

#endif
