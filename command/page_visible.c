/* page_visible: which keys a query sees, and whether through the state or as pairs. */
#include "page.h"

enum { CHUNKS = 6, SIDE = 240, STEP = SIDE / CHUNKS };

static void draw_causal(const page *p)
{
    for (int i = 0; i < CHUNKS; i++) {
        const int at = i * STEP;
        if (i)
            fprintf(p->out, "<rect class=\"cell-wash\" y=\"%d\" width=\"%d\" height=\"%d\"/>", at, at, STEP);
        fprintf(p->out, "<path class=\"cell\" d=\"M%d %dv%dh%dz\"/>", at, at, STEP, STEP);
        if (i)
            fprintf(p->out, "<line class=\"grid\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>", at, at, at);
    }
    fprintf(p->out, "<g font-size=\"13\"><text x=\"%d\" y=\"%d\">c</text></g>", STEP + 8, STEP + 24);
}

static void draw(const page *p)
{
    const bool causal = p->head->causal;
    fprintf(p->out,
            "<figure class=\"map\"><svg width=\"%d\" viewBox=\"-28 -24 %d %d\" role=\"img\"><title>%s</title>"
            "<rect class=\"sheet\" width=\"%d\" height=\"%d\"/>",
            SIDE + 30, SIDE + 30, SIDE + 26,
            causal ? "Keys that a query sees: those up to its own" : "Every query sees every key", SIDE,
            SIDE);
    if (causal)
        draw_causal(p);
    else
        fprintf(p->out, "<rect class=\"cell\" width=\"%d\" height=\"%d\"/>", SIDE, SIDE);
    fprintf(p->out,
            "<g font-size=\"13\"><text x=\"0\" y=\"-8\">keys j →</text>"
            "<text transform=\"translate(-10 %d) rotate(-90)\" text-anchor=\"end\">queries t "
            "→</text></g></svg></figure>\n",
            0);
}

static void write_chunk(const page *p, const page_machine *machine)
{
    if (!machine->planned || !(machine->plan.facts.forms & 1 << FORM_CHUNKED))
        return;
    fprintf(p->out, "<li>%s, ", machine->title);
    fputs(machine->target->name, p->out);
    fprintf(p->out, ": chunks of <data class=\"chunk_%s\" value=\"%d\">%d</data> tokens</li>\n",
            machine == &p->machine[PAGE_CPU] ? "cpu" : "gpu", machine->plan.facts.chunk,
            machine->plan.facts.chunk);
}

void page_visible(const page *p)
{
    page_section(p, "visible", "What a query sees");
    fputs("<div class=\"figure-row\">\n", p->out);
    draw(p);
    fputs("<div style=\"flex:1 1 18rem\">\n", p->out);
    if (p->head->causal)
        fputs("<p>Token t sees the keys j ≤ t. In the <b>parallel</b> form every visible pair has a score. "
              "In the <b>chunked</b> form only the pairs inside a chunk have one (full colour); all "
              "earlier keys (pale) come out of the state, which takes in a chunk when it is over. The "
              "<b>recurrent</b> form is a chunk of one token.</p>\n",
              p->out);
    else
        fputs("<p>Every query sees every key, before it and behind it. In the <b>parallel</b> form every "
              "pair has "
              "a score. In the <b>chunked</b> form keys have none: chunk by chunk they go into the state, "
              "which "
              "every query reads when all are in it.</p>\n",
              p->out);
    if (p->head->gate)
        fputs("<p>The gate lets what was seen fade: a key counts e<sup>G<sub>t</sub> − G<sub>j</sub></sup> "
              "as much, in every form alike.</p>\n",
              p->out);
    if (p->head->window)
        fprintf(p->out,
                "<p>The newest %d keys have softmax's weights, and are not in the state: it lags behind "
                "them, in every "
                "form alike.</p>\n",
                p->head->window);
    fputs("<ul class=\"notes\">\n", p->out);
    for (int i = 0; i < PAGE_MACHINES; i++)
        write_chunk(p, &p->machine[i]);
    fputs("</ul>\n</div>\n</div>\n", p->out);
    page_section_end(p);
}
