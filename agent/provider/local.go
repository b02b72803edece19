package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/pillion-dev/pillion/tools/guard"
)

// LocalServer is a model server found on this machine. Its Config is ready for New.
type LocalServer struct {
	ID      string  `json:"id"` // ollama, lmstudio, llamacpp, vllm
	Name    string  `json:"name"`
	BaseURL string  `json:"baseURL"` // with /v1
	Models  []Model `json:"models"`  // as the server lists them; may be empty
}

// Config for New.
func (s LocalServer) Config() Config {
	return Config{ID: s.ID, Kind: KindCompatible, BaseURL: s.BaseURL}
}

// Probe is a place where a model server may listen.
type Probe struct {
	ID, Name string
	URL      string // without a path
}

// DefaultProbes are the addresses on which the usual model servers listen unless told otherwise. A server on another port has to be
// configured.
func DefaultProbes() []Probe {
	return []Probe{
		{ID: "ollama", Name: "Ollama", URL: "http://127.0.0.1:11434"},
		{ID: "lmstudio", Name: "LM Studio", URL: "http://127.0.0.1:1234"},
		{ID: "llamacpp", Name: "llama.cpp", URL: "http://127.0.0.1:8080"},
		{ID: "vllm", Name: "vLLM", URL: "http://127.0.0.1:8000"},
	}
}

const (
	// A closed port answers at once; 200 ms are for a server that is busy.
	probeTimeout  = 200 * time.Millisecond // to connect, and again to begin to answer
	probeListTime = 500 * time.Millisecond // all of it
	maxModelList  = 1 << 20                // bytes
)

// Discover asks all probes at once which models they have, and returns those that answered, in the probes' order,
// within half a second. It is for when a person asks or no model is configured: nothing calls it by itself.
func Discover(ctx context.Context, probes []Probe) []LocalServer {
	client := guard.Client(guard.Reason{Who: guard.Model}, guard.Network{Timeout: probeTimeout, Tune: func(t *http.Transport) {
		t.Proxy = nil // this is about this machine
		t.ResponseHeaderTimeout, t.DisableKeepAlives = probeTimeout, true
	}})
	// A redirect would lead away from this machine, to an address that nobody has configured.
	client.CheckRedirect = guard.NoRedirects
	found := make([]*LocalServer, len(probes))
	var wg sync.WaitGroup
	// Each ends within probeListTime, so a server that does not answer delays the others by no more than that.
	for i, p := range probes {
		wg.Go(func() { found[i] = ask(ctx, client, p) })
	}
	wg.Wait()
	var out []LocalServer
	for _, s := range found {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out
}

// ask lists the models of one server; nil when nothing at that address speaks the format.
func ask(ctx context.Context, client *http.Client, p Probe) *LocalServer {
	ctx, cancel := context.WithTimeout(ctx, probeListTime)
	defer cancel()
	s := &LocalServer{ID: p.ID, Name: p.Name, BaseURL: strings.TrimRight(p.URL, "/") + "/v1"}
	list, err := listModels(ctx, client, s.BaseURL+"/models", "", s.ID)
	if err != nil && !refusedConnection(err) {
		// Older versions of Ollama list their models on this path only.
		list, err = listModels(ctx, client, strings.TrimRight(p.URL, "/")+"/api/tags", "", s.ID)
	}
	if err != nil {
		return nil
	}
	s.Models = list
	return s
}

// refusedConnection reports that no connection was made: then another path on the same port cannot answer either.
func refusedConnection(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// listModels reads a server's list of models, at most maxModelList bytes of it. key may be empty.
func listModels(ctx context.Context, client *http.Client, url, key, provider string) ([]Model, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	// Any program may listen on the port and answer without end.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxModelList))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, parseFailure(resp.StatusCode, resp.Header, body)
	}
	return parseModels(body, provider)
}

// parseModels reads {"data":[{"id":…}]} and Ollama's {"models":[{"name":…}]}, with the context size in tokens where the server reports
// it. Any program may listen on the port, so an id with white space or control characters is left out: people would see it in a list.
func parseModels(body []byte, provider string) ([]Model, error) {
	type entry struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		MaxModel int    `json:"max_model_len"`  // vLLM
		Length   int    `json:"context_length"` // OpenRouter and others
		Meta     struct {
			Context int `json:"n_ctx"`
			Train   int `json:"n_ctx_train"`
		} `json:"meta"` // llama.cpp
	}
	var list struct {
		Data   []entry `json:"data"`
		Models []entry `json:"models"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Data == nil && list.Models == nil {
		return nil, fmt.Errorf("no list of models: %w", errNoAPI)
	}
	if list.Data == nil {
		list.Data = list.Models
	}
	out := []Model{}
	for _, e := range list.Data {
		id := e.ID
		if id == "" {
			id = e.Name
		}
		// 200 bytes are more than any model's name; a longer one is not a name, and would be shown in a list.
		if id == "" || len(id) > 200 || strings.ContainsFunc(id, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) || notForChat(id) {
			continue
		}
		m := Lookup(provider, id)
		// The first size that is reported counts: the one that the server was started with comes before the one that the model was
		// trained for.
		for _, n := range []int{e.MaxModel, e.Length, e.Meta.Context, e.Meta.Train} {
			if n > 0 {
				m.Context = n
				break
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// notForChat reports models that cannot hold a conversation: embeddings, rerankers, speech recognition. Servers list them among the
// others, and they would fail at the first prompt.
func notForChat(id string) bool {
	id = strings.ToLower(id)
	return strings.Contains(id, "embed") || strings.Contains(id, "rerank") || strings.Contains(id, "whisper")
}
