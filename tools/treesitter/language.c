#include "language.h"
#include <stdlib.h>
#include <string.h>

// An automaton reads tokens; its steps are 0, or twice the next state and 2, and 1 more for white space before the token.
typedef struct {
  uint32_t states, width;
  const uint8_t *classes; // of the characters in ASCII; the last class is the end of the text
  const uint16_t *accept; // by state: the token that ends in it, or NO_TOKEN
  const uint16_t *steps;
} automaton;

enum { NO_TOKEN = 0xFFFF, CHARACTERS = 128, HEADER = 21 };

static bool run(const automaton *a, lexer *l, uint16_t state) {
  bool found = false;
  for (;;) {
    if (a->accept[state] != NO_TOKEN) {
      found = true;
      l->result = a->accept[state];
      l->mark_end(l);
    }
    // Texts have ASCII only.
    uint32_t class = l->eof(l) ? a->width - 1 : a->classes[l->lookahead & (CHARACTERS - 1)];
    uint16_t step = a->steps[state * a->width + class];
    if (step == 0) return found;
    l->advance(l, step & 1);
    state = (step >> 1) - 1;
  }
}

// The grammars whose tables are packed. S: with an external scanner, which is linked from the grammar's module.
#define GRAMMARS(S, N) \
  N(0, c) S(1, cpp) S(2, css) N(3, go) N(4, java) S(5, javascript) S(6, lua) S(7, php) S(8, python) S(9, ruby) S(10, rust) S(11, tsx) S(12, typescript) S(13, bash)

enum { COUNT = 14 };
static language languages[COUNT];
static automaton tokens[COUNT], keywords[COUNT];

// The runtime does not say which grammar it reads tokens for, so each has functions of its own.
#define LEX(i, name)                                                                           \
  static bool tokens_##name(lexer *l, uint16_t state) { return run(&tokens[i], l, state); }    \
  static bool keywords_##name(lexer *l, uint16_t state) { return run(&keywords[i], l, state); }
GRAMMARS(LEX, LEX)

#define DECLARE(i, name)                                                        \
  void *tree_sitter_##name##_external_scanner_create(void);                     \
  void tree_sitter_##name##_external_scanner_destroy(void *);                   \
  bool tree_sitter_##name##_external_scanner_scan(void *, lexer *, const bool *); \
  unsigned tree_sitter_##name##_external_scanner_serialize(void *, char *);     \
  void tree_sitter_##name##_external_scanner_deserialize(void *, const char *, unsigned);
#define NOTHING(i, name)
GRAMMARS(DECLARE, NOTHING)

#define SCANNER(i, name) \
  {#name, tokens_##name, keywords_##name, {0, 0, \
    tree_sitter_##name##_external_scanner_create, tree_sitter_##name##_external_scanner_destroy, tree_sitter_##name##_external_scanner_scan, \
    tree_sitter_##name##_external_scanner_serialize, tree_sitter_##name##_external_scanner_deserialize}},
#define NO_SCANNER(i, name) {#name, tokens_##name, keywords_##name, {0}},
static const struct {
  const char *name;
  bool (*tokens)(lexer *, uint16_t);
  bool (*keywords)(lexer *, uint16_t);
  scanner external;
} code[COUNT] = { GRAMMARS(SCANNER, NO_SCANNER) };

int find(const char *name) {
  for (int i = 0; i < COUNT; i++)
    if (strcmp(code[i].name, name) == 0) return i;
  return -1;
}

typedef struct { const uint8_t *data; size_t at, size; } reader;

// table is the next n bytes, from a multiple of 8; at is beyond size when there are not as many.
static const void *table(reader *r, size_t n) {
  r->at = (r->at + 7) & ~(size_t)7;
  const void *p = r->data + r->at;
  r->at += n;
  return p;
}

static const char **strings(const char *s, uint32_t n) {
  const char **list = calloc(n + 1, sizeof *list);
  for (uint32_t i = 0; list && i < n; i++, s += strlen(s) + 1) list[i] = s;
  return list;
}

static void read_automaton(reader *r, automaton *a, uint32_t states, uint32_t width) {
  *a = (automaton){ states, width, table(r, CHARACTERS), table(r, 0), 0 };
  a->accept = table(r, states * sizeof *a->accept);
  a->steps = table(r, (size_t)states * width * sizeof *a->steps);
}

const language *unpack(int i, const uint8_t *data, size_t size) {
  reader r = { data, 0, size };
  if (i < 0 || i >= COUNT || size < HEADER * sizeof(uint32_t)) return NULL;
  const uint32_t *h = table(&r, HEADER * sizeof *h);
  language *l = &languages[i];
  *l = (language){
    .version = 13, .symbols = h[0], .aliases = h[1], .tokens = h[2], .external_tokens = h[3], .states = h[4], .large_states = h[5],
    .productions = h[6], .fields = h[7], .max_alias = (uint16_t)h[8], .keyword_token = (uint16_t)h[9], .external = code[i].external,
    .tokens_of = code[i].tokens, .keywords_of = h[19] ? code[i].keywords : NULL,
  };
  uint32_t symbols = h[0] + h[1];
  const char *names = table(&r, h[15]), *fields = table(&r, h[16]);
  l->metadata = table(&r, symbols * 3);
  l->public_symbols = table(&r, symbols * 2);
  l->alias_map = table(&r, h[12] * 2);
  l->alias_sequences = table(&r, (size_t)h[6] * h[8] * 2);
  l->field_maps = table(&r, h[7] ? h[6] * 4 : 0);
  l->field_entries = table(&r, h[11] * 4);
  l->modes = table(&r, h[4] * 4);
  l->external.symbols = table(&r, h[3] * 2);
  l->external.valid = table(&r, (size_t)h[10] * h[3]);
  l->parse_table = table(&r, (size_t)h[5] * h[0] * 2);
  l->small_index = table(&r, (size_t)(h[4] - h[5]) * 4);
  l->small_table = table(&r, h[13] * 2);
  l->actions = table(&r, h[14] * 8);
  read_automaton(&r, &tokens[i], h[17], h[18]);
  read_automaton(&r, &keywords[i], h[19], h[20]);
  table(&r, 0);
  if (r.at != size) return NULL;
  if (!h[3]) l->external = (scanner){0};
  l->symbol_names = strings(names, symbols);
  const char **list = calloc(h[7] + 1, sizeof *list); // the field 0 is none
  if (!list || !l->symbol_names) return NULL;
  for (uint32_t f = 1; f <= h[7]; f++, fields += strlen(fields) + 1) list[f] = fields;
  l->field_names = list;
  return l;
}
