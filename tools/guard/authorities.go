package guard

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
)

// extraAuthorities names a PEM file with certificate authorities that count beside the system's. It is Node's variable, which companies
// set on their machines for other agents: one file then serves them all. SSL_CERT_FILE, which Go reads by itself, counts instead
// of the system's.
const extraAuthorities = "NODE_EXTRA_CA_CERTS"

// authorities is the TLS configuration of every connection; nil is Go's own. The file is read once, like Go reads the system's.
var authorities = sync.OnceValues(func() (*tls.Config, error) { return readAuthorities(os.Getenv(extraAuthorities)) })

// readAuthorities is authorities with the file of that name; "" is none.
func readAuthorities(path string) (*tls.Config, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates of %s: %w", extraAuthorities, err)
	}
	// Where the system's cannot be listed (a container without any), the file alone counts.
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s (%s) holds no certificate in PEM form", path, extraAuthorities)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// AuthoritiesError says what is wrong with the file of NODE_EXTRA_CA_CERTS; nil: nothing is, or it is not set. Connections are made
// with the system's authorities then, so the failure of one says that its certificate is not trusted, and this says why.
func AuthoritiesError() error {
	_, err := authorities()
	return err
}
