package provider_test

import (
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

func TestCloudsAreAddressedAndSignedInToInTheirOwnWay(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("HOME", t.TempDir())
	for _, v := range []string{"AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_AWS_API_KEY", "AWS_PROFILE"} {
		t.Setenv(v, "")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-aws-0123456789")
	tests := map[string]struct {
		cfg          provider.Config
		model        string // m where it does not matter
		path, query  string
		header, want string
		not          string
	}{
		"azure, v1":                    {provider.Config{Kind: provider.KindOpenAI, Cloud: provider.CloudAzure, Key: secret}, "", "/openai/v1/chat/completions", "", "Api-Key", secret, "Authorization"},
		"azure, v1, responses":         {provider.Config{Kind: provider.KindResponses, Cloud: provider.CloudAzure, Key: secret}, "", "/openai/v1/responses", "", "Api-Key", secret, "Authorization"},
		"azure, a deployment":          {provider.Config{Kind: provider.KindOpenAI, Cloud: provider.CloudAzure, Version: "2024-10-21", Key: secret}, "", "/openai/deployments/m/chat/completions", "api-version=2024-10-21", "Api-Key", secret, "Authorization"},
		"azure, Entra's token":         {provider.Config{Kind: provider.KindOpenAI, Cloud: provider.CloudAzure, Token: secret}, "", "/openai/v1/chat/completions", "", "Authorization", "Bearer " + secret, "Api-Key"},
		"bedrock, its key":             {provider.Config{Kind: provider.KindAnthropic, Cloud: provider.CloudBedrock, Region: "eu-central-1", Key: secret}, "", "/v1/messages", "", "Authorization", "Bearer " + secret, "X-Api-Key"},
		"bedrock, an open model":       {provider.Config{Kind: provider.KindCompatible, Cloud: provider.CloudBedrock, Region: "eu-central-1"}, "qwen.qwen3-coder", "/v1/chat/completions", "", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/", "X-Api-Key"},
		"bedrock, an open model's key": {provider.Config{Kind: provider.KindCompatible, Cloud: provider.CloudBedrock, Region: "eu-central-1", Key: secret}, "openai.gpt-oss-120b", "/v1/chat/completions", "", "Authorization", "Bearer " + secret, "X-Api-Key"},
		"bedrock, OpenAI's model":      {provider.Config{Kind: provider.KindResponses, Cloud: provider.CloudBedrock, Region: "eu-central-1"}, "openai.gpt-5.5", "/openai/v1/responses", "", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/", "X-Api-Key"},
		"vertex, Gemini":               {provider.Config{Kind: provider.KindGemini, Cloud: provider.CloudVertex, Token: secret}, "gemini-2.5-pro", "/publishers/google/models/gemini-2.5-pro:streamGenerateContent", "alt=sse", "Authorization", "Bearer " + secret, "X-Goog-Api-Key"},
		"vertex, Claude":               {provider.Config{Kind: provider.KindAnthropic, Cloud: provider.CloudVertex, Token: secret}, "claude-opus-4-8@default", "/publishers/anthropic/models/claude-opus-4-8@default:streamRawPredict", "", "Authorization", "Bearer " + secret, "X-Api-Key"},
		"vertex, an open model":        {provider.Config{Kind: provider.KindCompatible, Cloud: provider.CloudVertex, Token: secret}, "zai-org/glm-5-maas", "/endpoints/openapi/chat/completions", "", "Authorization", "Bearer " + secret, "Api-Key"},
		"bedrock, signed":              {provider.Config{Kind: provider.KindAnthropic, Cloud: provider.CloudBedrock, Region: "eu-central-1"}, "", "/v1/messages", "", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/", "X-Api-Key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.model == "" {
				tt.model = "m"
			}
			srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 401, Message: "no"}}, wiretest.Step{Text: "hi"})
			tt.cfg.BaseURL = srv.URL
			p, err := provider.New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			req := &provider.Request{Model: provider.Model{ID: tt.model}, Messages: user("hi")}
			if _, err := stream(t, p, req); kindOf(err) != provider.ErrAuth {
				t.Errorf("%v", err)
			}
			r, err := stream(t, p, req)
			if err != nil || r.Text != "hi" {
				t.Fatalf("%v %v", r, err)
			}
			got := srv.Requests()[1]
			if got.Path != tt.path || got.Query != tt.query || !strings.HasPrefix(got.Header.Get(tt.header), tt.want) || got.Header.Get(tt.not) != "" {
				t.Errorf("%s with %v", got.Path, got.Header)
			}
		})
	}
}

func TestACloudThatNobodyIsSignedInToSaysHow(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("HOME", t.TempDir())
	for _, v := range []string{"AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_AWS_API_KEY", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"} {
		t.Setenv(v, "")
	}
	srv := wiretest.New(t)
	for _, cfg := range []provider.Config{{Region: "eu-central-1", BaseURL: srv.URL}, {}} {
		cfg.Kind, cfg.Cloud, cfg.ID = provider.KindAnthropic, provider.CloudBedrock, "bedrock"
		p, err := provider.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")})
		if kindOf(err) != provider.ErrAuth || !strings.Contains(err.Error(), "AWS_REGION") || !strings.Contains(err.Error(), "aws sso login") {
			t.Errorf("%v", err)
		}
	}
	if len(srv.Requests()) > 0 {
		t.Error("asked without a signature")
	}
}

// Vertex has its own forms of two formats: Claude's model is in the address and its version in the body, and Gemini's calls have no ids.
func TestVertexGetsTheFormatsAsItKnowsThem(t *testing.T) {
	call := []provider.Message{
		{ID: "1", Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: "hi"}}},
		{ID: "2", Role: provider.RoleAssistant, Parts: []provider.Part{{Type: provider.PartToolCall, CallID: "call_1", Name: "read", Input: []byte(`{"a":1}`)}}},
		{ID: "3", Role: provider.RoleTool, Parts: []provider.Part{{Type: provider.PartToolResult, CallID: "call_1", Name: "read", Text: "text"}}},
	}
	for kind, want := range map[provider.Kind][2]string{
		provider.KindAnthropic: {`"anthropic_version":"vertex-2023-10-16"`, `"model"`},
		provider.KindGemini:    {`{"functionCall":{"name":"read","args":{"a":1}}}`, `"id"`},
	} {
		srv := wiretest.New(t, wiretest.Step{Text: "hi"})
		// The addresses of Vercel's library name a maker.
		p, err := provider.New(provider.Config{Kind: kind, Cloud: provider.CloudVertex, Token: secret, BaseURL: srv.URL + "/v1/projects/p/locations/global/publishers/google"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "gemini-2.5-pro"}, Messages: call}); err != nil {
			t.Fatal(err)
		}
		got := srv.Requests()[0]
		if body := string(got.Body); !strings.Contains(body, want[0]) || strings.Contains(body, want[1]) || !strings.HasPrefix(got.Path, "/v1/projects/p/locations/global/publishers/") || strings.Count(got.Path, "publishers") != 1 {
			t.Errorf("%s: %s %s", kind, got.Path, body)
		}
	}
}

// A region becomes part of a host that gets credentials, so it is nothing but a region.
func TestARegionIsNoAddress(t *testing.T) {
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", secret)
	for _, cloud := range []provider.Cloud{provider.CloudBedrock, provider.CloudVertex} {
		for _, region := range []string{"evil.example/", "evil.example#", "a@evil.example:1/", "../x", "EU"} {
			p, err := provider.New(provider.Config{Kind: provider.KindAnthropic, Cloud: cloud, Region: region, Project: "p", Token: secret})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}); kindOf(err) != provider.ErrInvalid || !strings.Contains(err.Error(), "region") {
				t.Errorf("%s %s: %v", cloud, region, err)
			}
		}
	}
}

func TestVertexWithoutASignInSaysHow(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("CLOUDSDK_CONFIG", t.TempDir())
	t.Setenv("GCE_METADATA_HOST", "127.0.0.1:1")
	for _, project := range []string{"", "p"} {
		for _, kind := range provider.Kinds() { // a section of the configuration may name any
			p, err := provider.New(provider.Config{ID: "google-vertex", Kind: kind, Cloud: provider.CloudVertex, Project: project})
			if err != nil {
				t.Fatal(err)
			}
			_, err = stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")})
			if kindOf(err) != provider.ErrAuth || !strings.Contains(err.Error(), "gcloud auth application-default login") || !strings.Contains(err.Error(), "GOOGLE_VERTEX_PROJECT") {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}
