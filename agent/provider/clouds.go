package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// responses. ctx is that of a request for a token. Azure has two kinds of address: deployments with an api-version, and the newer v1 API, which is OpenAI's own format.
func (b *base) openaiAddress(ctx context.Context, model, path string) (*url.URL, http.Header, error) {
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
	if b.cfg.Cloud == CloudVertex {
		u, token, err := b.vertexAddress(ctx, "endpoints/openapi/"+path)
		return u, b.newHeader("Accept", "application/json", "Authorization", bearer(token)), err
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

// services are the names of the clouds in tables of hosted models.
var services = map[Cloud]string{CloudAzure: "azure", CloudBedrock: "amazon-bedrock", CloudVertex: "google-vertex"}

// serves reports a model that can be asked for at the addresses that this package uses. Bedrock's older endpoints have two more forms of
// each id, with a version behind the name (…-v1:0) and with a region before the maker (eu.anthropic.…).
func (c Cloud) serves(model string, all []*catalogEntry) bool {
	if c != CloudBedrock {
		return true
	}
	if strings.Contains(model, ":") {
		return false
	}
	_, rest, _ := strings.Cut(model, ".")
	maker, _, ok := strings.Cut(rest, ".")
	// What others begin with is a maker's name, so that what is before it here is a region's.
	return !ok || !slices.ContainsFunc(all, func(e *catalogEntry) bool { return strings.HasPrefix(e.ID, maker+".") })
}

// KindOf is the format in which a cloud serves a model; fallback where it does not depend on the model.
func (c Cloud) KindOf(model string, fallback Kind) Kind {
	switch c {
	case CloudBedrock:
		return bedrockKind(model)
	case CloudVertex:
		return vertexKind(model)
	}
	return fallback
}

// vertexKind is the format in which Vertex serves a model: Claude as Messages, other makers' models (maker/model) as Chat Completions,
// Google's own as Gemini (https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/use-partner-models).
func vertexKind(model string) Kind {
	switch {
	case strings.HasPrefix(model, "claude-"):
		return KindAnthropic
	case strings.Contains(model, "/"):
		return KindCompatible
	}
	return KindGemini
}

// bedrockKind is the format in which Bedrock serves a model: Claude as Messages, OpenAI's own models as Responses, all others as Chat
// Completions (https://docs.aws.amazon.com/bedrock/latest/userguide/bedrock-mantle.html).
func bedrockKind(model string) Kind {
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
	if bedrockKind(model) == KindResponses {
		at += "/openai"
	}
	return at + "/v1"
}

// isRegion reports the name of a region. It becomes part of a host to which credentials are sent, so anything else is refused.
func isRegion(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// badRegion is the error for a region that is none.
func (b *base) badRegion() error {
	return &Error{Kind: ErrInvalid, Message: fmt.Sprintf("%s: %q is not the name of a region; correct the provider's region", b.cfg.ID, b.cfg.Region)}
}

// vertexAddress returns an address below a project's location, and the token for it. A baseURL takes the place of all before path; people
// copy it with the part that names a maker, as the library of Vercel has it.
func (b *base) vertexAddress(ctx context.Context, path string) (*url.URL, string, error) {
	at := strings.TrimRight(b.cfg.BaseURL, "/")
	for _, tail := range []string{"/publishers/google", "/publishers/anthropic/models", "/endpoints/openapi"} {
		at = strings.TrimSuffix(at, tail)
	}
	if at == "" {
		if b.cfg.Project == "" {
			return nil, "", errCloudSignIn{errors.New("no project; set GOOGLE_VERTEX_PROJECT")}
		}
		region := cmp.Or(b.cfg.Region, "global")
		if !isRegion(region) {
			return nil, "", b.badRegion()
		}
		host := region + "-aiplatform.googleapis.com"
		switch region {
		case "global":
			host = "aiplatform.googleapis.com"
		case "eu", "us": // several regions of one jurisdiction
			host = "aiplatform." + region + ".rep.googleapis.com"
		}
		at = "https://" + host + "/v1/projects/" + pathSegment(b.cfg.Project) + "/locations/" + pathSegment(region)
	}
	u, err := joinURL(at, path)
	if err != nil {
		return nil, "", err
	}
	if u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, "", &Error{Kind: ErrInvalid, Message: b.cfg.ID + ": a token of Google Cloud is sent over https only; correct the provider's baseURL (" + b.where() + ")"}
	}
	if token := cmp.Or(b.cfg.Token, b.cfg.Key); token != "" {
		return u, token, nil
	}
	token, err := b.gcp().Token(ctx)
	if err != nil {
		return nil, "", errCloudSignIn{err}
	}
	return u, token, nil
}

// bedrockAddress returns the address of Bedrock's Messages endpoint and the key for it, which is a bearer token; without one the request
// must be signed. A missing region is reported here, where both remedies can be named.
func (b *base) bedrockAddress() (at, key string, err error) {
	at = cmp.Or(b.cfg.BaseURL, os.Getenv("ANTHROPIC_BEDROCK_MANTLE_BASE_URL"))
	if at == "" && b.cfg.Region == "" {
		return "", "", errCloudSignIn{errors.New("no region; set AWS_REGION")}
	}
	if at == "" && !isRegion(b.cfg.Region) {
		return "", "", b.badRegion()
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
