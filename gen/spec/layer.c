/* layer {...}: heads that one call computes side by side; and layers that the file returns. */
#include "head/layer.h"

#include <stdlib.h>
#include <string.h>

#include "script.h"
#include "value.h"

static const char *const layer_fields[] = {"name", "heads", NULL};
static const char *const part_fields[] = {"head", "count", NULL};

/* ---- layer { name = ..., heads = { { head = ..., count = ... }, ... } } ---- */

/* Reads entry i of the list on top of the stack: its head becomes user value i + 1 of the layer at index 2. */
static void read_part(lua_State *L, spec_layer *layer, int i)
{
    lua_rawgeti(L, -1, i + 1);
    const int part = lua_gettop(L);
    if (!lua_istable(L, part))
        script_refuse(L, 0, "entry %d of heads of layer is %s, but { head = ..., count = ... } is needed",
                      i + 1, spec_describe(L, part));
    spec_fields(L, part, "an entry of heads", part_fields, false);
    layer->counts[i] =
        (int)spec_field_whole(L, part, "an entry of heads", "count", 1, LAYER_MAX_HEADS, SPEC_REQUIRED);
    lua_getfield(L, part, "head");
    if (!luaL_testudata(L, -1, SPEC_HEAD))
        script_refuse(L, 0, "head of entry %d of heads is %s, but what head {...} made is needed", i + 1,
                      spec_describe(L, -1));
    lua_setiuservalue(L, 2, i + 1);
    lua_settop(L, part - 1);
}

static int make_layer(lua_State *L)
{
    lua_settop(L, 1);
    spec_fields(L, 1, "layer", layer_fields, false);
    lua_getfield(L, 1, "heads");
    if (!lua_istable(L, -1))
        script_refuse(L, 0, "heads of layer is %s, but a list of { head = ..., count = ... } is needed",
                      spec_describe(L, -1));
    const lua_Unsigned parts = lua_rawlen(L, -1);
    spec_fields(L, 2, "heads", (const char *const[]){NULL}, true);
    if (parts < 1 || parts > LAYER_MAX_PARTS)
        script_refuse(L, 0, "heads of layer has %I entries, but 1 to %d are needed", (lua_Integer)parts,
                      LAYER_MAX_PARTS);
    spec_layer *layer = lua_newuserdatauv(L, sizeof *layer, (int)parts);
    *layer = (spec_layer){.line = script_line(L), .part_count = (int)parts};
    luaL_setmetatable(L, SPEC_LAYER);
    lua_insert(L, 2); /* order on the stack: the table, the layer, the list */
    spec_field_name(L, 1, "layer", layer->name);
    for (int i = 0; i < layer->part_count; i++)
        read_part(L, layer, i);
    lua_settop(L, 2);
    return 1;
}

const luaL_Reg spec_layer_functions[] = {{"layer", make_layer}, {NULL, NULL}};

/* ---- a layer that the file returned ---- */

static void check_layer_name(lua_State *L, const fpa_head_list *list, const spec_layer *value)
{
    const char *origin = NULL;
    script_charge(L, list->count + list->layer_count);
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->heads[i]->name, value->name) == 0)
            origin = list->heads[i]->origin;
    for (int i = 0; i < list->layer_count; i++)
        if (strcmp(list->layers[i].name, value->name) == 0)
            origin = list->layers[i].origin;
    if (origin)
        script_refuse(L, value->line, "the name '%s' is used twice (the first is at %s)", value->name,
                      origin);
}

static fpa_layer_spec *new_layer(lua_State *L, const spec_layer *value, fpa_head_list *list)
{
    fpa_layer_spec *more = realloc(list->layers, ((size_t)list->layer_count + 1) * sizeof *list->layers);
    if (!more)
        script_no_memory(L);
    list->layers = more;
    fpa_layer_spec *layer = &more[list->layer_count];
    *layer = (fpa_layer_spec){.name = strdup(value->name), .part_count = value->part_count};
    list->layer_count++; /* from here on the list frees the layer */
    layer->origin = strdup(spec_origin(L, value->line));
    layer->parts = calloc((size_t)value->part_count, sizeof *layer->parts);
    if (!layer->name || !layer->origin || !layer->parts)
        script_no_memory(L);
    return layer;
}

void spec_take_layer(lua_State *L, int index, fpa_head_list *list)
{
    const spec_layer *value = lua_touserdata(L, index);
    const fpa_head *heads[LAYER_MAX_PARTS];
    fpa_error error = {0};
    /* heads that the file does not return by themselves are added to the list, too */
    for (int i = 0; i < value->part_count; i++) {
        lua_getiuservalue(L, index, i + 1);
        spec_take_head(L, lua_gettop(L), list);
        lua_pop(L, 1);
    }
    check_layer_name(L, list, value);
    fpa_layer_spec *layer = new_layer(L, value, list);
    for (int i = 0; i < value->part_count; i++) {
        lua_getiuservalue(L, index, i + 1);
        layer->parts[i] = (fpa_layer_share){spec_take_head(L, lua_gettop(L), list), value->counts[i]};
        heads[i] = list->heads[layer->parts[i].head];
        lua_pop(L, 1);
    }
    if (layer_validate(value->name, heads, value->counts, value->part_count, &error))
        script_raise(L, error.code, value->line, "%s", error.message);
}
