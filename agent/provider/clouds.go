package provider

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/awsauth"
)

// openaiAddress returns the address of a request in one of OpenAI's formats and its header with the sign-in. path is chat/completions or
// responses. Azure has two kinds of address: deployments with an api-version, and the newer v1 API, which is OpenAI's own format.
func (b *base) openaiAddress(model, path string) (*url.URL, http.Header, error) {
	at := b.cfg.BaseURL
	if b.cfg.Cloud == CloudAzure {
		// Azure takes a key in the header api-key; a token is one of its directory, Entra.
		header := b.newHeader("Accept", "application/json", "Api-Key", b.cfg.Key, "Authorization", bearer(b.cfg.Token))
		if b.cfg.Version == "" {
			u, err := joinURL(azureV1(at), path)
			return u, header, err
		}
		if path == "chat/completions" { // …/openai/deployments/NAME/chat/completions?api-version=…
			path = "deployments/" + pathSegment(model) + "/" + path
		}
		u, err := joinURL(at, "openai/"+path)
		if err != nil {
			return nil, nil, err
		}
		if u.Scheme != "https" && !loopback(u.Hostname()) {
			return nil, nil, &Error{Kind: ErrInvalid, Message: b.cfg.ID + ": a key for Azure is sent over https only; correct the provider's baseURL (" + b.where() + ")"}
		}
		query := u.Query()
		query.Set("api-version", b.cfg.Version)
		u.RawQuery = query.Encode()
		return u, header, nil
	}
	if b.cfg.Cloud == CloudBedrock {
		at, token, err := b.bedrockAddress()
		if err != nil {
			return nil, nil, err
		}
		u, err := joinURL(bedrockRoute(at, model), path)
		return u, b.newHeader("Accept", "application/json", "Authorization", bearer(token)), err
	}
	if at == "" {
		at = "https://api.openai.com/v1"
	}
	// An earlier request got a 404 without it.
	if slices.Contains(b.refused(baseURLQuirk), "/v1") {
		path = "v1/" + path
	}
	u, err := joinURL(at, path)
	// A token from a gateway or a sign-in takes the place of a key: both are sent as a bearer token.
	return u, b.newHeader("Accept", "application/json", "Authorization", bearer(cmp.Or(b.cfg.Token, b.cfg.Key))), err
}

// loopback reports a host of this machine, whose traffic no network sees.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// azureV1 is the address of a resource's v1 API, which speaks OpenAI's own format.
func azureV1(at string) string {
	// A path in the address is kept as it is: gateways in front of Azure have their own.
	if u, err := url.Parse(at); err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = "/openai/v1"
		return u.String()
	}
	return at
}

// errCloudSignIn means that no valid sign-in to a cloud was found. It is a type of its own so that explain can name the cloud's command
// for signing in, instead of reporting a network failure.
type errCloudSignIn struct{ err error }

func (e errCloudSignIn) Error() string { return e.err.Error() }

// bedrockService is the name of these endpoints in signatures.
const bedrockService = "bedrock-mantle"

// BedrockKind is the format in which Bedrock serves a model: Claude as Messages, OpenAI's own models as Responses, all others as Chat
// Completions (https://docs.aws.amazon.com/bedrock/latest/userguide/bedrock-mantle.html).
func BedrockKind(model string) Kind {
	model = strings.ToLower(model)
	switch {
	case strings.Contains(model, "anthropic.") || strings.Contains(model, "claude"):
		return KindAnthropic
	case strings.Contains(model, "openai.") && isGPT5(model):
		return KindResponses
	}
	return KindCompatible
}

// bedrockRoute is the address of OpenAI's formats beside that of the Messages endpoint. OpenAI's own models have another path than the
// open ones.
func bedrockRoute(at, model string) string {
	at = strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(at, "/"), "/v1"), "/anthropic")
	if BedrockKind(model) == KindResponses {
		at += "/openai"
	}
	return at + "/v1"
}

// bedrockAddress returns the address of Bedrock's Messages endpoint and the key for it, which is a bearer token; without one the request
// must be signed. A missing region is reported here, where both remedies can be named.
func (b *base) bedrockAddress() (at, key string, err error) {
	at = cmp.Or(b.cfg.BaseURL, os.Getenv("ANTHROPIC_BEDROCK_MANTLE_BASE_URL"))
	if at == "" && b.cfg.Region == "" {
		return "", "", errCloudSignIn{errors.New("no region; set AWS_REGION")}
	}
	key = cmp.Or(b.cfg.Key, os.Getenv("AWS_BEARER_TOKEN_BEDROCK"), os.Getenv("ANTHROPIC_AWS_API_KEY"))
	return cmp.Or(at, "https://bedrock-mantle."+b.cfg.Region+".api.aws/anthropic"), key, nil
}

// signForBedrock signs a request with the person's AWS credentials.
func (b *base) signForBedrock(q *http.Request, body []byte) error {
	region := cmp.Or(b.cfg.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if region == "" {
		return errCloudSignIn{errors.New("no region; set AWS_REGION")}
	}
	keys, err := b.aws().Keys(q.Context(), region)
	if err != nil {
		return errCloudSignIn{err}
	}
	awsauth.Sign(q, body, keys, bedrockService, region, time.Now())
	return nil
}
