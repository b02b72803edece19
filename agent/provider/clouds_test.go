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
