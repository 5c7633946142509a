/* A model as a picture: what `relayout dot` and `relayout report` draw.
 *
 * One *sheet* is one graph: the main graph, then the bodies of its If, Loop and Scan nodes and the model-local functions, each a sheet of its
 * own that its node refers to.  Constants are no boxes; they are among the inputs that a box lists.  Example, of x -> Transpose t -> y:
 *
 *   sheet "main": boxes  input x | Transpose t, "[0,2,3,1] · 588.0 KiB" | output y;   values x, t's output
 *
 * Everything is text in `mem` and places in lists; nothing refers to the graph any more, which may be optimized or freed then. */
#ifndef RL_PICTURE_H
#define RL_PICTURE_H
#include "ir.h"
#include "layers.h"

typedef enum {
    RL_PIC_NODE, RL_PIC_INPUT, RL_PIC_OUTPUT,
    RL_PIC_OUTSIDE /* a value of a graph around the sheet, or made by a node that is not drawn */
} rl_pickind;

typedef struct { const char *attr; uint32_t sheet; } rl_picbody;
typedef struct {
    rl_pickind kind;
    const char *name;      /* of the node; NULL: none.  Else the value's */
    const char *op;        /* NULL: no node */
    const char *line;      /* below the op: a Transpose's order of axes and bytes, else the type of the first output */
    const char *attrs;     /* "axis=1 ..." */
    int64_t bytes;         /* that it moves (rl_moved_bytes); -1: it is no movement */
    bool transpose;        /* counted among the Transposes that move data; or a conversion between passes */
    uint32_t *in, *out;    /* values; RL_NONE: left out */
    uint32_t nin, nout, nbody;
    rl_picbody *body;
} rl_picnode;
typedef struct { const char *name, *type; bool constant; } rl_picvalue;

typedef struct {
    const char *title;
    struct { rl_picnode *p; uint32_t n, cap; } node; /* in an order of execution; box i of layers is node i */
    struct { rl_picvalue *p; uint32_t n, cap; } value;
    uint32_t *netof;  /* [value.n] its net in layers, RL_NONE: nothing joins */
    rl_layers layers;
} rl_sheet;
typedef struct { rl_sheet *p; uint32_t n, cap; } rl_picture;

/* name NULL: everything; else the boxes within `around` steps of the nodes and tensors of that name. */
typedef struct { const char *name; uint64_t around; } rl_picpart;
enum { RL_PIC_MOST = 100000 }; /* nodes of a picture */

/* Types must have been inferred.  placed: fill in layers, too, which rl_picture_svg and rl_picture_json need.  RL_EUSAGE: nothing has that
 * name.  RL_ELIMIT: more than RL_PIC_MOST nodes. */
rl_status rl_picture_of(const rl_graph *g, const rl_picpart *part, bool placed, rl_arena *mem, rl_picture *out);

/* Text for Graphviz. */
void rl_picture_dot(const rl_picture *p, rl_text *t);

/* An SVG of pictures side by side, each with a heading. Colours follow the viewer's light or dark scheme. */
typedef struct { const rl_picture *picture; const char *title; } rl_panel;
void rl_picture_svg(const rl_panel *panel, uint32_t n, rl_text *t);

/* As JSON (page/report.js reads it); texts are places in `strings`, which pictures of one page share. */
typedef struct { rl_hash index; struct { const char **p; uint32_t n, cap; } list; rl_arena *mem; } rl_picstrings;
void rl_picture_json(const rl_picture *p, rl_picstrings *s, rl_text *t);

/* 0 .. 4: how much that is beside `most`, the most bytes that one movement of the picture has; by factors of four. */
uint32_t rl_picture_heat(int64_t bytes, int64_t most);
int64_t rl_picture_most(const rl_picture *p);
/* s as text of XML: what is markup or cannot stand there is escaped. */
void rl_xml_text(rl_text *t, const char *s);

#endif
