/* emit_table: putting a plan's fields into the Lua table that templates read. Private to emit*.c. */
#ifndef FPAC_GEN_EMIT_TABLE_H
#define FPAC_GEN_EMIT_TABLE_H

#include <lua.h>

#include "emit.h"

/* Set a field of the table on top of the stack. */
void set_integer(lua_State *L, const char *field, lua_Integer value);
/* Whole numbers go as Lua floats too: templates print them with flt(). */
void set_number(lua_State *L, const char *field, double value);
void set_string(lua_State *L, const char *field, const char *value);
void set_boolean(lua_State *L, const char *field, bool value);
void set_integers(lua_State *L, const char *field, const int *values, int count);
void push_integers(lua_State *L, const int *values, int count);

/* plan.projections, plan.weighted and plan.monomials; row: numbers of packed rows, or NULL: the plan's. */
void push_projections(lua_State *L, const fpa_plan *plan, const int *row);
void push_monomials(lua_State *L, const fpa_plan *plan);

/* plan.outer: tiles and the split schedule of warpgroups (split.c). */
void push_split(lua_State *L, const fpa_plan *plan);
/* plan.fused_packed: sizes of fused_chunk of packed rows, false where there is none
 * (fused_packed.c). */
void push_fused_packed(lua_State *L, const fpa_plan *plan);
/* plan.cluster_scan: sizes of that kernel, false where there is none (cluster_scan.c). */
void push_cluster_scan(lua_State *L, const fpa_cluster_scan_plan *cluster_scan);

#endif
