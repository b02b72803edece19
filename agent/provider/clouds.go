package provider

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/bedrock"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"
)

// openaiAddress returns the options for the address and the sign-in of an OpenAI client. Azure has two kinds of address: deployments with
// an api-version, and the newer v1 API, which is OpenAI's own format.
func (b *base) openaiAddress() (opts []option.RequestOption) {
	at := strings.TrimRight(b.cfg.BaseURL, "/")
	if b.cfg.Cloud == CloudAzure {
		key := b.cfg.Key
		// The deployment's name goes into the path: the middleware of azure.WithEndpoint puts it there.
		if b.cfg.Version != "" { // deployments: …/openai/deployments/NAME/chat/completions?api-version=…
			opts = append(opts, azure.WithEndpoint(at, b.cfg.Version))
			if u, err := url.Parse(at); err == nil && u.Scheme == "http" {
				opts = append(opts, azure.WithUnsafeAllowHTTP()) // the SDK lets this machine alone have it
			}
			if key != "" {
				return append(opts, azure.WithAPIKey(key))
			}
			return opts
		}
		// Azure takes a key in the header api-key.
		opts = append(opts, option.WithBaseURL(azureV1(at)))
		if key != "" {
			opts = append(opts, option.WithHeader("api-key", key))
		}
		return opts
	}
	if at != "" {
		opts = append(opts, option.WithBaseURL(at+"/"))
	}
	// A token from a gateway or a sign-in takes the place of a key: both are sent as a bearer token.
	key := b.cfg.Token
	if key == "" {
		key = b.cfg.Key
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	return opts
}

// azureV1 is the address of a resource's v1 API, which speaks OpenAI's own format.
func azureV1(at string) string {
	// A path in the address is kept as it is: gateways in front of Azure have their own.
	if u, err := url.Parse(at); err == nil && strings.Trim(u.Path, "/") == "" {
		at += "/openai/v1"
	}
	return at + "/"
}

// errCloudSignIn means that no valid sign-in to a cloud was found. It is a type of its own so that explain can name the cloud's command
// for signing in, instead of reporting a network failure.
type errCloudSignIn struct{ err error }

func (e errCloudSignIn) Error() string { return e.err.Error() }

// bedrockClient signs in with the configured key, else with what the AWS SDK finds: variables, profiles, roles. A missing region is
// reported here, because the SDK would report it at the first request and name neither setting.
func (b *base) bedrockClient(ctx context.Context, opts []anthropicoption.RequestOption) (anthropic.Client, error) {
	if b.cfg.Region == "" && b.cfg.BaseURL == "" {
		return anthropic.Client{}, errCloudSignIn{errors.New("no region; set AWS_REGION")}
	}
	c, err := bedrock.NewMantleClient(ctx, bedrock.MantleClientConfig{APIKey: b.cfg.Key, AWSRegion: b.cfg.Region, BaseURL: b.cfg.BaseURL}, opts...)
	if err != nil {
		return anthropic.Client{}, errCloudSignIn{err}
	}
	// Only the Messages API is used, so the client's other services stay unset.
	return anthropic.Client{Options: c.Options, Messages: c.Messages}, nil
}
