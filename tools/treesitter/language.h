// What tree-sitter's runtime reads of a grammar and what it gives to a lexer: version 13 of its binary interface, field by field.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lexer lexer;
struct lexer {
  int32_t lookahead;
  uint16_t result;
  void (*advance)(lexer *, bool);
  void (*mark_end)(lexer *);
  uint32_t (*column)(lexer *);
  bool (*at_range_start)(const lexer *);
  bool (*eof)(const lexer *);
};

typedef struct {
  const bool *valid;
  const uint16_t *symbols;
  void *(*create)(void);
  void (*destroy)(void *);
  bool (*scan)(void *, lexer *, const bool *);
  unsigned (*serialize)(void *, char *);
  void (*deserialize)(void *, const char *, unsigned);
} scanner;

typedef struct {
  uint32_t version, symbols, aliases, tokens, external_tokens, states, large_states, productions, fields;
  uint16_t max_alias;
  const void *parse_table, *small_table, *small_index, *actions;
  const char *const *symbol_names;
  const char *const *field_names;
  const void *field_maps, *field_entries, *metadata, *public_symbols, *alias_map, *alias_sequences, *modes;
  bool (*tokens_of)(lexer *, uint16_t);
  bool (*keywords_of)(lexer *, uint16_t);
  uint16_t keyword_token;
  scanner external;
  const void *primary_states; // from version 14 on, for queries
} language;

// unpack makes a grammar of the data that gen has written, which it uses from then on. index is its number in the list of language.c. It
// returns NULL when the data has another form.
const language *unpack(int index, const uint8_t *data, size_t size);

// find is the number of a grammar, -1: there is none.
int find(const char *name);
