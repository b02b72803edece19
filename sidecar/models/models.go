// Package models finds the model a session talks to: from the configuration, the environment's keys, the stored
// keys, model servers on this machine, and the built-in model that is always there. It connects to nothing.
//
//	m := models.New(models.Options{Config: configFor, Env: os.Getenv})
//	p, model, err := m.Resolve(ctx, "/home/me/project", "anthropic/claude-sonnet-5-5")
package models

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/gcpauth"
	"github.com/pillion-dev/pillion/agent/provider/quickfix"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/keys"
	"github.com/pillion-dev/pillion/tools/guard"
)

// Options are where keys and settings come from. A nil function means that there is nothing to
// read there, except for Local.
type Options struct {
	Config func(cwd string) *config.Config
	Env    func(name string) string
	Keys   func() map[string]keys.Key // kept keys by provider id; nil: none
	// Local finds model servers on this machine; nil: provider.Discover on the usual ports.
	Local func(ctx context.Context) []provider.LocalServer
	// Accounts are those that were signed in to, by provider; nil: none.
	Accounts func() map[string]keys.Account
	// Access says how a provider's models are asked with an account; nil: accounts are not used.
	Access Access
	// External has the agents of other makers, whose provider is ExternalProvider; nil: there are none.
	External External
	// GoogleCredentials is the file with the person's credentials of Google Cloud, "" where there is none; nil: gcpauth.Place.
	GoogleCredentials func() string
}

// Access says how the models of a provider are asked with an account, in a directory: what signed in may be part of its configuration.
type Access interface {
	Access(ctx context.Context, cwd, provider string, account keys.Account, models []provider.Model) (Accessed, error)
}

// Accessed is how requests are made with an account.
type Accessed struct {
	Key, Token, BaseURL string // empty: not given
	Headers             map[string]string
	Transport           http.RoundTripper // nil: the usual one
	Version             string            // differs where anything else does
}

// External finds agents of other makers for a directory. It starts none.
type External interface {
	// Agents lists those that can be used, with where each comes from as people read it.
	Agents(cwd string) []Info
	// Agent finds one by its id. The error tells a person what to do.
	Agent(cwd, id string) (provider.Provider, provider.Model, error)
	// WritesItself reports that it changes files by itself, so that it needs a draft.
	WritesItself(cwd, id string) bool
	// Forget ends what runs for a session.
	Forget(session string)
}

// ExternalProvider is the provider of External's agents: acp/claude.
const ExternalProvider = "acp"

// Models finds and keeps models. Safe for concurrent use.
type Models struct {
	Options
	// mu guards live and local. Nothing is asked over the network while it is held.
	mu    sync.Mutex
	live  map[string]provider.Provider // guarded by mu; by id and settings: a provider keeps what it encoded
	local []provider.LocalServer       // guarded by mu; as last found

	renewing sync.Mutex // one token is renewed at a time: a refresh token may work once
}

// New reads nothing before the first call.
func New(o Options) *Models {
	if o.Local == nil {
		o.Local = func(ctx context.Context) []provider.LocalServer {
			return provider.Discover(ctx, provider.DefaultProbes())
		}
	}
	if o.GoogleCredentials == nil {
		o.GoogleCredentials = gcpauth.Place
	}
	return &Models{Options: o, live: map[string]provider.Provider{}}
}

// Forget drops what providers keep for a session that has ended. Without it, the encoded conversations of a
// sidecar that runs all day would stay in memory.
func (m *Models) Forget(session string) {
	if m.External != nil {
		m.External.Forget(session) // before mu: it waits for processes
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.live {
		if f, ok := p.(provider.Forgetter); ok {
			f.Forget(session)
		}
	}
}

// Builtin is the id of the built-in model.
const Builtin = "builtin/quickfix"

// settings is what all sources together say about one provider. origin is the variable, the file or the address
// that made it usable, as people see it in lists; cfg.KeyFrom names the place of the key for error messages.
type settings struct {
	id, origin string
	cfg        provider.Config
	models     config.Models
	options    provider.Options // sent with the requests of all its models
	usable     bool             // there is a key or an address
	fallback   string           // the model when none is selected
	missing    string           // what to do to make it usable
	stored     keys.Source      // where a stored key was found; "" when none is used
	account    *keys.Account    // what the provider was signed in to with; nil: it has a key, or nothing
	byModel    bool             // the wire format depends on the model
}

// nativeProvider is a provider with a wire format of its own, and the variables that its own tools read, so that
// their users need no configuration.
type nativeProvider struct {
	id    string
	keys  []string // variables that hold the key; none: it takes no key
	base  string   // variable of the base URL
	model string   // variable that names the model
}

// native are the native providers, in the order in which a key makes one of them the default.
var native = []nativeProvider{
	{"anthropic", []string{"ANTHROPIC_API_KEY"}, "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"},
	{"openai", []string{"OPENAI_API_KEY"}, "OPENAI_BASE_URL", "OPENAI_MODEL"},
	{"google", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "GEMINI_BASE_URL", "GEMINI_MODEL"},
	{"azure", []string{"AZURE_OPENAI_API_KEY", "AZURE_API_KEY"}, "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_DEPLOYMENT"},
	{"bedrock", []string{"AWS_BEARER_TOKEN_BEDROCK"}, "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "BEDROCK_MODEL"},
	{"google-vertex", nil, "", ""}, // signed in to with Google's own tools
}

// vertexProject is the variable that names a project for Vertex's models alone.
const vertexProject = "GOOGLE_VERTEX_PROJECT"

// cloud adds what the clouds need besides the wire format. Credentials of AWS or Google Cloud alone make neither Bedrock nor Vertex usable,
// because they are there for other reasons; Bedrock's own key does, and a project that is named for Vertex, or a section in the configuration.
func (m *Models) cloud(s *settings, p config.Provider, configured bool) {
	switch {
	case s.id == "azure", p.NPM == "@ai-sdk/azure":
		s.cfg.Cloud = provider.CloudAzure
		if s.cfg.Version = p.Version; s.cfg.Version == "" {
			s.cfg.Version = m.env("AZURE_OPENAI_API_VERSION")
		}
		if s.cfg.BaseURL == "" {
			if name := m.env("AZURE_RESOURCE_NAME"); name != "" {
				s.cfg.BaseURL = "https://" + name + ".openai.azure.com"
			} else if s.usable {
				s.usable, s.missing = false, "set AZURE_OPENAI_ENDPOINT (https://NAME.openai.azure.com)"
			}
		}
	case s.id == "bedrock", p.NPM == "@ai-sdk/amazon-bedrock":
		s.cfg.Cloud = provider.CloudBedrock
		// The region is looked for where the AWS tools look, the configuration first.
		for _, region := range []string{p.Region, m.env("AWS_REGION"), m.env("AWS_DEFAULT_REGION")} {
			if s.cfg.Region == "" {
				s.cfg.Region = region
			}
		}
		s.usable = s.usable || configured
		s.byModel = p.API == ""
	case s.id == "google-vertex", strings.HasPrefix(p.NPM, "@ai-sdk/google-vertex"):
		s.cfg.Cloud = provider.CloudVertex
		s.cfg.Project, s.cfg.Region = p.Project, p.Region
		if o := p.Options; o != nil {
			s.cfg.Project, s.cfg.Region = cmp.Or(s.cfg.Project, o.Project), cmp.Or(s.cfg.Region, o.Location)
		}
		for _, v := range []string{vertexProject, "GOOGLE_CLOUD_PROJECT", "GCP_PROJECT", "GCLOUD_PROJECT"} {
			s.cfg.Project = cmp.Or(s.cfg.Project, m.env(v))
		}
		for _, v := range []string{"GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION", "VERTEX_LOCATION"} {
			s.cfg.Region = cmp.Or(s.cfg.Region, m.env(v))
		}
		named := configured || m.env(vertexProject) != ""
		switch place := m.GoogleCredentials(); {
		case s.cfg.Project == "" && s.cfg.BaseURL == "":
			s.usable, s.missing = false, "set "+vertexProject
		case s.cfg.Key != "" || s.cfg.Token != "":
		case named && place != "":
			s.usable, s.origin = true, cmp.Or(s.origin, place)
		case configured: // the machine may have credentials of its own
			s.usable, s.origin = true, cmp.Or(s.origin, "configuration")
		default:
			s.missing = "set " + vertexProject + " and run: gcloud auth application-default login"
		}
		s.byModel = p.API == ""
	}
}

// kindOf is the wire format of a configured provider, by our name or by OpenCode's npm package; ok is false when
// neither is given. A package that is not known is taken for Chat Completions, which most services speak.
func kindOf(p config.Provider) (provider.Kind, bool) {
	if p.API != "" {
		return provider.Kind(p.API), true
	}
	switch {
	case p.NPM == "@ai-sdk/anthropic":
		return provider.KindAnthropic, true
	case p.NPM == "@ai-sdk/amazon-bedrock":
		return provider.KindAnthropic, true
	case p.NPM == "@ai-sdk/azure":
		return provider.KindOpenAI, true
	case p.NPM == "@ai-sdk/openai":
		return provider.KindResponses, true
	case strings.HasPrefix(p.NPM, "@ai-sdk/google"):
		return provider.KindGemini, true
	case p.NPM != "":
		return provider.KindCompatible, true
	}
	return "", false
}

// providers are all providers of a directory with their settings: the native ones in the order of native, then the
// others by name. The order decides which key makes the default model.
func (m *Models) providers(cwd string) []settings {
	c := m.config(cwd)
	stored := map[string]keys.Key{}
	if m.Keys != nil {
		stored = m.Keys()
	}
	out := make([]settings, 0, len(native)+len(c.Provider))
	for _, n := range native {
		s := settings{id: n.id, cfg: provider.Config{ID: n.id, Kind: provider.DefaultKind(n.id), BaseURL: m.env(n.base)}, fallback: provider.DefaultModel(n.id)}
		// The first variable that is set counts; several are the names of one key in different tools.
		for _, k := range n.keys {
			if v := m.env(k); v != "" && s.cfg.Key == "" {
				s.cfg.Key, s.cfg.KeyFrom, s.origin = v, k, k
			}
		}
		// A bearer token, which gateways in front of the API take, instead of a key.
		if n.id == "anthropic" && s.cfg.Key == "" {
			if s.cfg.Token = m.env("ANTHROPIC_AUTH_TOKEN"); s.cfg.Token != "" {
				s.origin, s.cfg.KeyFrom = "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"
			}
		}
		// A key from the editor wins over the environment: the person entered it for Pillion.
		if k := stored[n.id]; k.Value != "" && (s.cfg.Key == "" && s.cfg.Token == "" || k.Source == keys.Editor) {
			s.cfg.Key, s.cfg.Token, s.cfg.KeyFrom, s.origin, s.stored = k.Value, "", "the key kept by pillion auth", keyOrigin(k.Source), k.Source
		}
		if v := m.env(n.model); v != "" {
			s.fallback = v
		}
		if n.id == "openai" && s.cfg.BaseURL != "" && !strings.Contains(s.cfg.BaseURL, "api.openai.com") {
			s.cfg.Kind = provider.KindCompatible // another service's server speaks Chat Completions only
		}
		if s.origin == "" && s.cfg.BaseURL != "" {
			s.origin = n.base
		}
		s.usable = s.origin != ""
		// Also without a key: an error can then say which variable is missing.
		if len(n.keys) > 0 {
			s.cfg.KeyFrom = cmp.Or(s.cfg.KeyFrom, n.keys[0])
			s.missing = "set " + n.keys[0] + ", or run: pillion auth login " + n.id
		}
		// The section of the configuration comes last, so that it wins over variables and stored keys.
		s = applySection(s, c.Provider[n.id], c)
		_, named := c.Provider[n.id]
		m.cloud(&s, c.Provider[n.id], named)
		out = append(out, s)
	}
	// "builtin" cannot be configured: its model has no address and no key.
	names := make([]string, 0, len(c.Provider))
	for id := range c.Provider {
		if id != "builtin" && !slices.ContainsFunc(out, func(s settings) bool { return s.id == id }) {
			names = append(names, id)
		}
	}
	for id := range m.accounts() {
		if id != "builtin" && !slices.Contains(names, id) && !slices.ContainsFunc(out, func(s settings) bool { return s.id == id }) {
			names = append(names, id)
		}
	}
	for _, id := range m.hostedWithKey(stored) {
		if !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	sort.Strings(names)
	for _, id := range names {
		out = append(out, m.configuredProvider(id, stored[id], c))
	}
	m.addAccounts(out)
	for i := range out {
		if off := turnedOff(c, out[i].id); off != "" {
			out[i].usable, out[i].missing = false, "it is turned off by "+off
		}
	}
	return out
}

// accounts are those that were signed in to.
func (m *Models) accounts() map[string]keys.Account {
	if m.Accounts == nil || m.Access == nil {
		return nil
	}
	return m.Accounts()
}

// addAccounts makes providers usable that were signed in to. A key in the configuration or the environment counts before an account.
func (m *Models) addAccounts(all []settings) {
	accounts := m.accounts()
	for i := range all {
		a, ok := accounts[all[i].id]
		if !ok || all[i].cfg.Key != "" || all[i].cfg.Token != "" {
			continue
		}
		all[i].account, all[i].usable, all[i].stored = &a, true, a.Source
		all[i].origin = "signed in with " + a.Owner
		all[i].cfg.KeyFrom = all[i].origin
	}
}

// signIn adds what an account's owner says of requests to a provider's settings. What is configured stays.
func (m *Models) signIn(ctx context.Context, cwd string, s *settings) error {
	if s.account == nil {
		return nil
	}
	known := provider.Models(s.id)
	known = append(known, provider.HostedModels(s.id)...)
	for _, id := range slices.Sorted(maps.Keys(s.models)) {
		known = append(known, s.model(id))
	}
	a, err := m.Access.Access(ctx, cwd, s.id, *s.account, known)
	if err != nil {
		return err
	}
	s.cfg.Key, s.cfg.Token, s.cfg.Account = a.Key, a.Token, a.Version
	s.cfg.BaseURL = cmp.Or(s.cfg.BaseURL, a.BaseURL)
	if len(a.Headers) > 0 {
		s.cfg.Headers = maps.Clone(s.cfg.Headers)
		if s.cfg.Headers == nil {
			s.cfg.Headers = map[string]string{}
		}
		maps.Copy(s.cfg.Headers, a.Headers)
	}
	if a.Transport != nil {
		s.cfg.HTTPClient = &http.Client{Transport: a.Transport, CheckRedirect: guard.NoRedirects}
	}
	return nil
}

// turnedOff says which setting forbids a provider; "" when none does.
func turnedOff(c *config.Config, id string) string {
	switch {
	case slices.Contains(c.Disabled, id):
		return "disabled_providers (" + c.Origin("disabled_providers") + ")"
	case len(c.Enabled) > 0 && !slices.Contains(c.Enabled, id):
		return "enabled_providers (" + c.Origin("enabled_providers") + ")"
	}
	return ""
}

// keyOrigin says where a stored key is, for people.
func keyOrigin(s keys.Source) string {
	if s == keys.Editor {
		return "the editor"
	}
	return "pillion auth"
}

// addressSettings are the settings of a provider that say where requests go and what is sent with them. An
// untrusted project may not set them, and guard asks for their reason again at each connection, since trust may be
// revoked meanwhile.
func addressSettings(id string) []string {
	at := "provider." + id + "."
	return []string{at + "baseURL", at + "key", at + "apiKey", at + "headers", at + "options.baseURL", at + "options.apiKey", at + "options.headers", at + "options.authToken", at + "options.organization", at + "options.project", at + "options.queryParams", at + "options.endpoint", at + "region", at + "project", at + "options.location"}
}

// applySection applies the configuration's section, which takes precedence over the environment. Within it, our
// own keys win over those in OpenCode's options.
func applySection(s settings, p config.Provider, c *config.Config) settings {
	base, key, headers := p.BaseURL, p.Key, p.Headers
	if key == "" {
		key = p.APIKey
	}
	if o := p.Options; o != nil {
		if base == "" {
			base = o.BaseURL
		}
		if key == "" {
			key = o.APIKey
		}
		if headers == nil {
			headers = o.Headers
		}
		s = applyConnection(s, o)
	}
	s.cfg.Reason = c.Reason(addressSettings(s.id)...)
	kind, given := kindOf(p)
	if base != "" {
		s.cfg.BaseURL = base
		s.origin = c.Origin("provider." + s.id + ".baseURL")
		if s.id == "openai" && !given && !strings.Contains(base, "api.openai.com") {
			// Somebody else's server speaks Chat Completions, unless the address is given as OpenCode gives it: there the openai
			// provider is the one of OpenAI's own library, which speaks Responses.
			kind, given = provider.KindCompatible, true
			if p.BaseURL == "" && p.Options != nil && p.Options.BaseURL == base {
				kind = provider.KindResponses
			}
		}
	}
	if given {
		s.cfg.Kind = kind
	}
	// A key from the configuration replaces a stored one, so the latter is not reported as used.
	if key != "" {
		s.origin = c.Origin("provider." + s.id + ".key")
		s.cfg.Key, s.cfg.KeyFrom, s.stored = key, s.origin, ""
	} else if from := c.Origin("provider." + s.id + ".key"); from != "" {
		s.cfg.KeyFrom = from // the variable that should hold it
	}
	// A copy: the headers below are added to it, and the configuration is shared by all sessions of the directory.
	if headers != nil {
		s.cfg.Headers = maps.Clone(headers)
	}
	// Only OpenAI's formats have these headers; another service would get an account's name that is none of its
	// business.
	if o := p.Options; o != nil && (s.cfg.Kind == provider.KindOpenAI || s.cfg.Kind == provider.KindResponses || s.cfg.Kind == provider.KindCompatible) {
		for name, v := range map[string]string{"OpenAI-Organization": o.Organization, "OpenAI-Project": o.Project} {
			if v != "" {
				if s.cfg.Headers == nil {
					s.cfg.Headers = map[string]string{}
				}
				s.cfg.Headers[name] = v
			}
		}
	}
	// applyConnection may have set this quirk from OpenCode's option; the next line replaces all of them.
	quiet := s.cfg.Quirks.NoStreamUsage
	s.cfg.Quirks = provider.Quirks(p.Quirks)
	s.cfg.Quirks.NoStreamUsage = s.cfg.Quirks.NoStreamUsage || quiet
	if s.origin == "" && (base != "" || key != "") {
		s.origin = "configuration"
	}
	s.models = p.Models
	s.usable = s.usable || base != "" || key != ""
	// Sorted, because the order of a map would change the default model from start to start.
	if len(p.Models) > 0 && s.fallback == "" {
		ids := make([]string, 0, len(p.Models))
		for id := range p.Models {
			ids = append(ids, id)
		}
		sort.Strings(ids)
		s.fallback = ids[0]
	}
	return s
}

// applyConnection applies the options that are about the connection, and keeps the others for the requests.
// Timeouts are applied from the general one to the special ones, which win.
func applyConnection(s settings, o *config.ProviderOptions) settings {
	if o.Token != "" {
		s.cfg.Token, s.usable = o.Token, true
	}
	s.cfg.Query = o.Query
	s.cfg.Quirks.NoStreamUsage = o.Usage != nil && !*o.Usage
	if t := o.Timeout.Millis(); t > 0 {
		s.cfg.Idle, s.cfg.First = t, t
	}
	if t := o.Chunk.Millis(); t > 0 {
		s.cfg.Idle = t
	}
	if t := o.First.Millis(); t > 0 {
		s.cfg.First = t
	}
	s.options = RequestOptions(o.Rest)
	return s
}

// RequestOptions converts options of the configuration; nil when there are none. Their values stay JSON: they are
// passed to the provider as they were written.
func RequestOptions(from map[string]config.Any) provider.Options {
	if len(from) == 0 {
		return nil
	}
	out := provider.Options{}
	for k, v := range from {
		out[k] = json.RawMessage(v)
	}
	return out
}

// config is the configuration of a directory, never nil.
func (m *Models) config(cwd string) *config.Config {
	if m.Config != nil {
		if c := m.Config(cwd); c != nil {
			return c
		}
	}
	return &config.Config{}
}

// env reads a variable; "" without an environment.
func (m *Models) env(name string) string {
	if m.Env == nil {
		return ""
	}
	return m.Env(name)
}

// Default is the model of new sessions, and where it was set. Without any setting and key it is the built-in
// model, so that there is always one and a first try needs no account.
func (m *Models) Default(cwd string) (id, origin string) {
	c := m.config(cwd)
	if c.Model != "" {
		return c.Model, c.Origin("model")
	}
	for _, s := range m.providers(cwd) {
		if s.usable && s.fallback != "" {
			return s.id + "/" + s.fallback, s.origin
		}
	}
	return Builtin, "default: no model is configured"
}

// Small is the model for small jobs such as titles: the configured one, or a small one of the same provider if that
// is the provider's own service. A server of somebody else, or on this machine, gets no request that the person did
// not make. "" means none.
func (m *Models) Small(cwd, model string) string {
	if id := m.config(cwd).SmallModel; id != "" {
		return id
	}
	pid, _, _ := strings.Cut(model, "/")
	for _, s := range m.providers(cwd) {
		// An address of its own means a proxy or another server, which may not have the small model.
		if small := provider.SmallModel(s.id); s.id == pid && s.usable && s.cfg.BaseURL == "" && small != "" {
			return s.id + "/" + small
		}
	}
	return ""
}

// WritesItself implements agent.ExternalModels.
func (m *Models) WritesItself(cwd, model string) bool {
	id, ok := strings.CutPrefix(model, ExternalProvider+"/")
	return ok && m.External != nil && m.External.WritesItself(cwd, id)
}

// Resolve finds a model by "provider/model"; "" is the default. The model's own id may contain slashes
// (openrouter/vendor/model), so only the first one divides. Its errors say what to configure.
func (m *Models) Resolve(ctx context.Context, cwd, id string) (provider.Provider, provider.Model, error) {
	if id == "" {
		id, _ = m.Default(cwd)
	}
	pid, mid, ok := strings.Cut(id, "/")
	if !ok || pid == "" || mid == "" {
		return nil, provider.Model{}, fmt.Errorf("model %q: write it as provider/model, for example %s; pillion models lists them", id, Builtin)
	}
	if pid == "builtin" {
		if id != Builtin {
			return nil, provider.Model{}, fmt.Errorf("model %q: the built-in model is %s", id, Builtin)
		}
		return quickfix.Provider{}, quickfix.Model, nil
	}
	if pid == ExternalProvider && m.External != nil {
		return m.External.Agent(cwd, mid)
	}
	if off := turnedOff(m.config(cwd), pid); off != "" {
		return nil, provider.Model{}, fmt.Errorf("model %q: provider %s is turned off by %s", id, pid, off)
	}
	all := m.providers(cwd)
	i := slices.IndexFunc(all, func(s settings) bool { return s.id == pid })
	// Servers on this machine have no configuration; they are asked only for a name that is otherwise unknown.
	if i < 0 {
		if p, model, ok := m.resolveLocal(ctx, pid, mid); ok {
			return p, model, nil
		}
		if s := m.configuredProvider(pid, keys.Key{}, m.config(cwd)); hosted[pid] != (hostedProvider{}) {
			return nil, provider.Model{}, fmt.Errorf("model %q: provider %s has no key; %s", id, pid, s.missing)
		}
		return nil, provider.Model{}, fmt.Errorf("model %q: unknown provider %q; set provider.%s.baseURL in pillion.jsonc, or see pillion models", id, pid, pid)
	}
	s := all[i]
	if !s.usable {
		return nil, provider.Model{}, fmt.Errorf("model %q: provider %s has no key; %s", id, pid, s.missing)
	}
	model := s.model(mid)
	if s.byModel {
		s.cfg.Kind = s.cfg.Cloud.KindOf(model.ID, s.cfg.Kind)
	}
	if err := m.signIn(ctx, cwd, &s); err != nil {
		return nil, provider.Model{}, fmt.Errorf("model %q: %w", id, err)
	}
	p, err := m.provider(s.cfg)
	return p, model, err
}

// model merges what the configuration says about a model over the built-in catalogue. Zero values in the
// configuration mean "not given", except where a pointer tells false from absent.
func (s settings) model(id string) provider.Model {
	over, named := s.models[id]
	for _, m := range s.models {
		if !named && m.ID == id { // a session stores the API's id, not the name in the configuration
			over, named = m, true
		}
	}
	api := id
	if named && over.ID != "" {
		api = over.ID
	}
	model := provider.Lookup(s.id, api)
	model.Provider, model.ID, model.Options = s.id, api, s.options
	if !named {
		return model
	}
	if over.Name != "" {
		model.Name = over.Name
	}
	if over.Limit != nil {
		model.Context, model.Output = max(model.Context, over.Limit.Context), over.Limit.Output
		if over.Limit.Context > 0 {
			model.Context = over.Limit.Context
		}
	}
	// Where the input has a limit of its own, no more than input and output together can be used.
	if l := over.Limit; l != nil && l.Input > 0 && (model.Context == 0 || l.Input+l.Output < model.Context) {
		model.Context = l.Input + l.Output
	}
	if over.Context > 0 {
		model.Context = over.Context
	}
	if over.Output > 0 {
		model.Output = over.Output
	}
	for _, b := range []struct {
		from *bool
		to   *bool
	}{{over.Images, &model.Images}, {over.PDF, &model.PDF}, {over.Thinking, &model.Thinking}} {
		if b.from != nil {
			*b.to = *b.from
		}
	}
	if over.CostIn > 0 {
		model.CostIn = over.CostIn
	}
	if over.CostOut > 0 {
		model.CostOut = over.CostOut
	}
	if over.CostRead > 0 {
		model.CostRead = over.CostRead
	}
	if over.CostWrite > 0 {
		model.CostWrite = over.CostWrite
	}
	// Model over provider: With adds the model's options to those of all models and replaces those of the same
	// name.
	model.Options, model.Headers = model.Options.With(RequestOptions(over.Options)), over.Headers
	for name, v := range over.Variants {
		// A variant that is turned off is not offered; "disabled" itself is not an option of a request.
		if string(v["disabled"]) == "true" {
			continue
		}
		if model.Variants == nil {
			model.Variants = map[string]provider.Options{}
		}
		more := RequestOptions(v)
		delete(more, "disabled")
		model.Variants[name] = more
	}
	return model
}

// provider keeps one instance for the same settings: it holds what it has encoded of its conversations.
func (m *Models) provider(cfg provider.Config) (provider.Provider, error) {
	// Everything that changes how requests are made is part of the key. A field that is missing here would let a
	// changed setting have no effect until the next start.
	key := fmt.Sprintf("%s|%s|%s|%s|%s|%s|%v|%s|%s|%s|%s|%v|%s|%s|%+v", cfg.Account, cfg.ID, cfg.Kind, cfg.BaseURL, cfg.Key, cfg.Token, cfg.Headers, cfg.Cloud, cfg.Version, cfg.Region, cfg.Project, cfg.Query, cfg.Idle, cfg.First, cfg.Quirks)
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.live[key]; p != nil {
		return p, nil
	}
	p, err := provider.New(cfg)
	if err == nil {
		m.live[key] = p
	}
	return p, err
}
