package provider

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTransformSchema(t *testing.T) {
	tests := map[string]struct {
		kind     Kind
		in, want string
	}{
		"nothing becomes the empty object":        {KindAnthropic, ``, `{"properties":{},"type":"object"}`},
		"no object becomes one":                   {KindOpenAI, `["x"]`, `{"properties":{},"type":"object"}`},
		"meta keywords go":                        {KindAnthropic, `{"$schema":"x","$id":"y","$comment":"z","type":"object","properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"additionalProperties true goes":          {KindAnthropic, `{"type":"object","properties":{},"additionalProperties":true}`, `{"properties":{},"type":"object"}`},
		"additionalProperties false stays":        {KindAnthropic, `{"type":"object","properties":{},"additionalProperties":false}`, `{"additionalProperties":false,"properties":{},"type":"object"}`},
		"references are inlined":                  {KindOpenAI, `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"d"}},"$defs":{"A":{"type":"string"}}}`, `{"properties":{"a":{"description":"d","type":"string"}},"type":"object"}`},
		"a reference to nothing accepts all":      {KindAnthropic, `{"type":"object","properties":{"a":{"$ref":"#/$defs/B"}}}`, `{"properties":{"a":{}},"type":"object"}`},
		"a property may be called $ref":           {KindAnthropic, `{"type":"object","properties":{"properties":{"type":"string"},"required":{"type":"string"}},"required":["required"]}`, `{"properties":{"properties":{"type":"string"},"required":{"type":"string"}},"required":["required"],"type":"object"}`},
		"top-level anyOf becomes one object":      {KindAnthropic, `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"c":{"type":"string"}},"required":["a","c"]},{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"string"}},"required":["b","c"]}]}`, `{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"required":["c"],"type":"object"}`},
		"top-level allOf unites what is required": {KindOpenAI, `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}}}]}`, `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"],"type":"object"}`},
		"openai loses bounds, keeps optional":     {KindResponses, `{"type":"object","properties":{"n":{"type":"integer","minimum":1,"exclusiveMaximum":9,"default":3},"s":{"type":"string","pattern":"x","minLength":1}},"required":["n"]}`, `{"properties":{"n":{"default":3,"type":"integer"},"s":{"type":"string"}},"required":["n"],"type":"object"}`},
		"openai arrays need items":                {KindOpenAI, `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"properties":{"a":{"items":{"type":"string"},"type":"array"}},"type":"object"}`},
		"compatible has one type":                 {KindCompatible, `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"const":"x"}}}`, `{"properties":{"a":{"type":"string"},"b":{"enum":["x"]}},"type":"object"}`},
		"gemini enums are strings":                {KindGemini, `{"type":"object","properties":{"n":{"type":"integer","enum":[1,2,null]}}}`, `{"properties":{"n":{"enum":["1","2"],"nullable":true,"type":"string"}},"type":"object"}`},
		"gemini null becomes nullable":            {KindGemini, `{"type":"object","properties":{"a":{"type":["integer","null"]},"b":{"anyOf":[{"type":"string"},{"type":"null"}],"description":"d"}}}`, `{"properties":{"a":{"nullable":true,"type":"integer"},"b":{"description":"d","nullable":true,"type":"string"}},"type":"object"}`},
		"gemini anyOf stands alone":               {KindGemini, `{"type":"object","properties":{"a":{"type":"string","default":"x","description":"d","oneOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}],"description":"d"}},"type":"object"}`},
		"gemini several types":                    {KindGemini, `{"type":"object","properties":{"a":{"type":["string","array"]}}}`, `{"properties":{"a":{"anyOf":[{"type":"string"},{"items":{"type":"string"},"type":"array"}]}},"type":"object"}`},
		"gemini arrays need items":                {KindGemini, `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":"array","items":{"type":"array"}}}}`, `{"properties":{"a":{"items":{"type":"string"},"type":"array"},"b":{"items":{"items":{"type":"string"},"type":"array"},"type":"array"}},"type":"object"}`},
		"gemini tuples":                           {KindGemini, `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"integer"}]}}}`, `{"properties":{"a":{"items":{"type":"integer"},"type":"array"}},"type":"object"}`},
		"gemini required must exist":              {KindGemini, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","ghost"],"additionalProperties":false}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		"gemini strings have no properties":       {KindGemini, `{"type":"object","properties":{"a":{"type":"string","properties":{"x":{}},"required":["x"],"format":"uri","pattern":"p"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"gemini constants":                        {KindGemini, `{"type":"object","properties":{"a":{"const":true}}}`, `{"properties":{"a":{"enum":["true"],"type":"string"}},"type":"object"}`},
		"gemini allOf":                            {KindGemini, `{"type":"object","properties":{"a":{"allOf":[{"type":"object","properties":{"x":{"type":"string"}}}],"description":"d"}}}`, `{"properties":{"a":{"description":"d","properties":{"x":{"type":"string"}},"type":"object"}},"type":"object"}`},
		"big numbers stay exact":                  {KindAnthropic, `{"type":"object","properties":{"n":{"maximum":9007199254740993,"type":"integer"}}}`, `{"properties":{"n":{"maximum":9007199254740993,"type":"integer"}},"type":"object"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := string(TransformSchema(tt.kind, json.RawMessage(tt.in))); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestASchemaThatRefersToItselfEnds(t *testing.T) {
	// A tree with many branches: inlining without a bound would never end.
	props := make([]string, 20)
	for i := range props {
		props[i] = `"p` + string(rune('a'+i)) + `":{"$ref":"#"}`
	}
	in := `{"type":"object","properties":{` + strings.Join(props, ",") + `}}`
	for _, kind := range Kinds() {
		out := TransformSchema(kind, json.RawMessage(in))
		if !json.Valid(out) || len(out) > 1<<20 || strings.Contains(string(out), "$ref") {
			t.Errorf("%s: %d bytes", kind, len(out))
		}
	}
	loop := `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/A"}}}`
	if out := TransformSchema(KindGemini, json.RawMessage(loop)); !json.Valid(out) {
		t.Errorf("%s", out)
	}
}

func FuzzTransformSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"anyOf":[{"type":["null","array"]},true]}}}`)
	f.Fuzz(func(t *testing.T, in string) {
		for _, kind := range Kinds() {
			out := TransformSchema(kind, json.RawMessage(in))
			var v map[string]any
			if json.Unmarshal(out, &v) != nil || v["type"] != "object" {
				t.Fatalf("%s: %s", kind, out)
			}
		}
	})
}
