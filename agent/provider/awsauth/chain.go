package awsauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// Chain finds credentials in the order of AWS's tools: variables, a web identity, the profile (keys, roles, IAM Identity Center, console
// sign-in, a program), the container, the machine. Temporary ones are kept until shortly before they expire; what a file or a variable
// says is read each time, so that a new sign-in counts at once. It may be used from several goroutines.
type Chain struct {
	Client *http.Client // for AWS's services
	Reason guard.Reason // with which requests to the machine's own services pass the gate

	mu   sync.Mutex // guards kept, and is held while temporary credentials are fetched: a refresh token works once
	kept Keys
}

const (
	// fresh is how long before their end temporary credentials are replaced.
	fresh = time.Minute
	// forever is the life of credentials that were fetched and have no end. Asking for them again may bother a person.
	forever = 100 * 365 * 24 * time.Hour
)

// Keys returns the person's credentials. region is where roles are assumed.
func (c *Chain) Keys(ctx context.Context, region string) (Keys, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Until(c.kept.Expires) > fresh {
		return c.kept, nil
	}
	keys, err := (&search{Chain: c, region: region}).find(ctx)
	if err != nil {
		if time.Until(c.kept.Expires) > 0 {
			return c.kept, nil // they still work
		}
		return Keys{}, err
	}
	c.kept = Keys{}
	if !keys.Expires.IsZero() {
		c.kept = keys
	}
	return keys, nil
}

// search is one search for credentials.
type search struct {
	*Chain
	region   string
	profiles map[string]section
	profile  section // the person's: the endpoints of services may be set there
}

// find looks in one place after the other.
func (s *search) find(ctx context.Context) (Keys, error) {
	s.profiles = readProfiles()
	named := cmp.Or(os.Getenv("AWS_PROFILE"), os.Getenv("AWS_DEFAULT_PROFILE"))
	name := cmp.Or(named, "default")
	s.profile = s.profiles[name]
	if s.profile == nil && named != "" {
		return Keys{}, fmt.Errorf("the profile %s of AWS_PROFILE is not in ~/.aws/config", name)
	}
	if keys, ok := fromEnvironment(); ok {
		return keys, nil
	}
	if file := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"); file != "" {
		return s.webIdentity(ctx, file, os.Getenv("AWS_ROLE_ARN"), os.Getenv("AWS_ROLE_SESSION_NAME"))
	}
	return s.fromProfile(ctx, name, map[string]bool{})
}

// fromEnvironment are the keys of the environment.
func fromEnvironment() (Keys, bool) {
	keys := Keys{
		ID:      cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_ACCESS_KEY")),
		Secret:  cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SECRET_KEY")),
		Session: os.Getenv("AWS_SESSION_TOKEN"),
	}
	return keys, keys.ID != "" && keys.Secret != ""
}

// fromProfile are the credentials of a profile; seen are the profiles that led to it. A profile may name itself as its source: then its
// own keys assume its role.
func (s *search) fromProfile(ctx context.Context, name string, seen map[string]bool) (Keys, error) {
	p, ok := s.profiles[name]
	if !ok && len(seen) > 0 {
		return Keys{}, fmt.Errorf("the profile %s, a source_profile, is not in ~/.aws/config", name)
	}
	role, source := p["role_arn"], p["source_profile"]
	if seen[name] {
		if p["aws_access_key_id"] == "" {
			return Keys{}, fmt.Errorf("the profile %s has itself as its source_profile and no keys", name)
		}
		role, source = "", ""
	}
	first := len(seen) == 0
	seen[name] = true
	if (source != "" || p["credential_source"] != "") && role == "" {
		return Keys{}, fmt.Errorf("the profile %s has no role_arn", name)
	}
	keys := Keys{ID: p["aws_access_key_id"], Secret: p["aws_secret_access_key"], Session: p["aws_session_token"]}
	if (keys.ID == "") != (keys.Secret == "") {
		return Keys{}, fmt.Errorf("the profile %s has one key without the other", name)
	}
	var err error
	switch {
	case source != "" && (first || keys.ID == ""):
		keys, err = s.fromProfile(ctx, source, seen)
	case keys.ID != "":
	case p["credential_source"] != "":
		keys, err = s.fromSource(ctx, p["credential_source"])
	case p["web_identity_token_file"] != "":
		return s.webIdentity(ctx, p["web_identity_token_file"], role, p["role_session_name"])
	case p["sso_session"]+p["sso_start_url"]+p["sso_account_id"] != "":
		keys, err = s.identityCenter(ctx, name, p)
	case p["login_session"] != "":
		keys, err = s.login(ctx, p["login_session"])
	case p["credential_process"] != "":
		keys, err = s.process(ctx, p["credential_process"])
	case os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")+os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "":
		keys, err = s.container(ctx)
	default:
		keys, err = s.machine(ctx)
	}
	if err != nil || role == "" {
		return keys, err
	}
	return s.assumeRole(ctx, name, p, keys)
}

// fromSource are the credentials that a profile names as the source of its role.
func (s *search) fromSource(ctx context.Context, source string) (Keys, error) {
	switch source {
	case "Ec2InstanceMetadata":
		return s.machine(ctx)
	case "EcsContainer":
		return s.container(ctx)
	case "Environment":
		if keys, ok := fromEnvironment(); ok {
			return keys, nil
		}
		return Keys{}, errors.New("credential_source is Environment, and AWS_ACCESS_KEY_ID is not set")
	}
	return Keys{}, fmt.Errorf("credential_source %q is none of EcsContainer, Ec2InstanceMetadata and Environment", source)
}

// process runs the program that a profile names. It is the person's own: the profile is outside every project, and such programs sign in
// with what the environment has. Its output holds the keys, so no error quotes it.
func (s *search) process(ctx context.Context, line string) (Keys, error) {
	const limit = time.Minute // that of AWS's tools; a person may have to answer a question
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	argv := []string{"sh", "-c", line}
	if runtime.GOOS == "windows" {
		argv = []string{"cmd.exe", "/C", line}
	}
	r := s.Reason
	r.Who = guard.Person
	cmd := guard.CommandFor(ctx, r, argv...)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second // a child of it may keep the pipe open
	err := guard.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return Keys{}, fmt.Errorf("the credential_process of the AWS profile failed: %w", err)
	}
	var said struct {
		Version                       int
		AccessKeyID                   string `json:"AccessKeyId"`
		SecretAccessKey, SessionToken string
		Expiration                    *time.Time
	}
	if json.Unmarshal(out.Bytes(), &said) != nil || said.Version != 1 || said.AccessKeyID == "" || said.SecretAccessKey == "" {
		return Keys{}, errors.New("the credential_process of the AWS profile printed no credentials of version 1")
	}
	expires := time.Now().Add(forever)
	if said.Expiration != nil {
		expires = *said.Expiration
	}
	return Keys{said.AccessKeyID, said.SecretAccessKey, said.SessionToken, expires}, nil
}

// local is the client for services of the machine and of the container, which no proxy reaches and which answer at once.
func (s *search) local() *http.Client {
	r := s.Reason
	r.Who = guard.Model
	client := guard.Client(r, guard.Network{Timeout: time.Second, Tune: func(t *http.Transport) {
		t.Proxy, t.DisableKeepAlives, t.ResponseHeaderTimeout = nil, true, 2*time.Second
	}})
	client.CheckRedirect = guard.NoRedirects
	return client
}

// served are credentials as the services of containers and machines send them.
type served struct {
	Code                   string
	AccessKeyID            string `json:"AccessKeyId"`
	SecretAccessKey, Token string
	Expiration             time.Time
}

func (v served) keys() (Keys, error) {
	if v.AccessKeyID == "" || v.SecretAccessKey == "" || v.Code != "" && !strings.EqualFold(v.Code, "Success") {
		return Keys{}, errors.New("the service for AWS credentials sent none")
	}
	return Keys{v.AccessKeyID, v.SecretAccessKey, v.Token, v.Expiration}, nil
}

// container asks the service of ECS or EKS. An address over http must be on this machine or one of the two services' own: the token that
// is sent there is a secret.
func (s *search) container(ctx context.Context) (Keys, error) {
	at := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		at = "http://169.254.170.2" + path
	} else if at == "" {
		return Keys{}, errors.New("credential_source is EcsContainer, and AWS_CONTAINER_CREDENTIALS_FULL_URI is not set")
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !containerHost(ctx, u.Hostname())) {
		return Keys{}, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this container")
	}
	token := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return Keys{}, fmt.Errorf("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: %w", err)
		}
		token = string(text)
	}
	var v served
	if err := call(ctx, s.local(), http.MethodGet, at, http.Header{"Authorization": {strings.TrimSpace(token)}}, nil, &v); err != nil {
		return Keys{}, err
	}
	return v.keys()
}

// containerHost reports the hosts to which a container's token may go in the clear.
func containerHost(ctx context.Context, host string) bool {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for _, a := range addrs {
		switch a = a.Unmap(); a {
		case netip.AddrFrom4([4]byte{169, 254, 170, 2}), netip.AddrFrom4([4]byte{169, 254, 170, 23}), netip.MustParseAddr("fd00:ec2::23"):
		default:
			if !a.IsLoopback() {
				return false
			}
		}
	}
	return err == nil && len(addrs) > 0
}

// machine asks the metadata service of EC2 for the credentials of the machine's role.
func (s *search) machine(ctx context.Context) (Keys, error) {
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return Keys{}, errors.New("no AWS credentials in variables or in ~/.aws, and AWS_EC2_METADATA_DISABLED is set")
	}
	at := cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), s.profile["ec2_metadata_service_endpoint"])
	if at == "" {
		at = "http://169.254.169.254"
		if strings.EqualFold(cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"), s.profile["ec2_metadata_service_endpoint_mode"]), "ipv6") {
			at = "http://[fd00:ec2::254]"
		}
	}
	at = strings.TrimRight(at, "/") + "/latest/"
	client := s.local()
	var token, role string
	header := http.Header{}
	err := call(ctx, client, http.MethodPut, at+"api/token", http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"300"}}, nil, &token)
	switch {
	case err == nil:
		header.Set("X-Aws-Ec2-Metadata-Token", token)
	// The first version of the service has no token.
	case strings.EqualFold(cmp.Or(os.Getenv("AWS_EC2_METADATA_V1_DISABLED"), s.profile["ec2_metadata_v1_disabled"]), "true"):
		return Keys{}, err
	}
	at += "meta-data/iam/security-credentials/"
	if err := call(ctx, client, http.MethodGet, at, header, nil, &role); err != nil {
		return Keys{}, fmt.Errorf("no AWS credentials in variables or in ~/.aws, and none of this machine: %w", err)
	}
	role, _, _ = strings.Cut(strings.TrimSpace(role), "\n")
	var v served
	if err := call(ctx, client, http.MethodGet, at+url.PathEscape(role), header, nil, &v); err != nil {
		return Keys{}, err
	}
	return v.keys()
}
