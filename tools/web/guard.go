package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// Allow lists private places that may be fetched: "localhost:3000", "10.1.2.0/24", "wiki.corp" (any port). A name allows every
// private address that it resolves to. Public addresses need no rule. A rule that is not a CIDR range, a name or an address matches
// nothing.
type Allow []string

// PrivateError is returned for an address of this machine, a private network or a cloud's metadata service. Otherwise a page that
// the model reads could make it fetch what only this machine can reach, such as a router or a database.
type PrivateError struct {
	Host string     // host:port as in the URL
	IP   netip.Addr // the address that it resolved to
}

// Metadata reports whether the address is one where clouds give keys to any process of the machine: link-local addresses and
// similar ones. Callers do not offer to allow these. IPv6 forms that contain such an address count too; otherwise a model could
// write it in one of them.
func (e *PrivateError) Metadata() bool {
	ip := e.IP.Unmap().WithZone("")
	for _, p := range metadata {
		if p.Contains(ip) {
			return true
		}
	}
	for p, at := range carriers {
		if b := ip.As16(); p.Contains(ip) && at > 0 {
			v4 := &PrivateError{IP: netip.AddrFrom4([4]byte(b[at : at+4]))}
			return v4.Metadata()
		}
	}
	return false
}

// metadata are the addresses of the metadata services of clouds: link-local IPv4 and IPv6 (AWS, Google, Azure, most others), AWS
// over IPv6, Alibaba, Oracle, and Azure's wire server.
var metadata = prefixes("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32")

func (e *PrivateError) Error() string {
	return fmt.Sprintf("%s is %s, an address of this machine or a private network, and is not fetched. The user can allow it: \"web\": {\"allow\": [%q]} in pillion.jsonc", e.Host, e.IP, e.Host)
}

// special are non-public ranges that the methods of netip.Addr do not cover, from the IANA special-purpose address registries.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10")

// carriers are IPv6 ranges whose addresses contain an IPv4 address that a gateway would connect to: NAT64 (RFC 6052), 6to4 (RFC
// 3056) and IPv4-compatible addresses. The number is the byte where the IPv4 address starts. Without this list 64:ff9b::7f00:1,
// which means this machine, would count as public.
var carriers = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2, netip.MustParsePrefix("::/96"): 12}

// prefixes parses constants; an error in them makes every test fail.
func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Public reports whether an address belongs to the public internet. The zone of a link-local address is ignored, and an IPv4 address
// mapped into IPv6 counts as the IPv4 address.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() || !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return false
	}
	for _, list := range [][]netip.Prefix{special, metadata} {
		for _, p := range list {
			if p.Contains(ip) {
				return false
			}
		}
	}
	for p, at := range carriers {
		if p.Contains(ip) {
			b := ip.As16() // carriers are IPv6
			return Public(netip.AddrFrom4([4]byte(b[at : at+4])))
		}
	}
	return true
}

// permits reports whether a private address may be fetched, given the host and port of the URL. A rule is a CIDR range, or a name
// or address with or without a port. host is the name in the URL. port is the one that is dialled; if the URL has none, the default
// of its scheme.
func (a Allow) permits(host, port string, ip netip.Addr) bool {
	ip = ip.Unmap()
	for _, rule := range a {
		if p, err := netip.ParsePrefix(rule); err == nil {
			if p.Contains(ip) {
				return true
			}
			continue
		}
		name, only, err := net.SplitHostPort(rule)
		if err != nil {
			name, only = strings.Trim(rule, "[]"), ""
		}
		if only != "" && only != port {
			continue
		}
		if strings.EqualFold(name, host) {
			return true
		}
		if x, err := netip.ParseAddr(name); err == nil && x.Unmap() == ip {
			return true
		}
	}
	return false
}

// target is the host and port of a URL with the rules that apply. The request's context carries it to check, which sees the
// address.
type target struct {
	host, port string
	allow      Allow
}

// targetKey is the key of a request's target in its context.
type targetKey struct{}

// check is the dialer's ControlContext: it checks the address that is about to be connected to, after the name was resolved. An
// earlier check would allow DNS rebinding, where a name resolves to a public address at first and to a private one later. A
// connection without a target in its context is refused, so that new code cannot bypass the check.
func check(ctx context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	t, ok := ctx.Value(targetKey{}).(target)
	if !ok {
		return errors.New("a connection without a target")
	}
	if Public(to.Addr()) || t.allow.permits(t.host, t.port, to.Addr()) {
		return nil
	}
	return &PrivateError{Host: joined(t), IP: to.Addr()}
}

// ahead checks a URL before a proxy gets it. This cannot be certain, because the proxy resolves names itself. Only addresses in the
// URL and names that this machine can resolve are checked. A name that cannot be resolved is allowed: behind many company proxies
// no name can be resolved.
func ahead(ctx context.Context, t target) error {
	ips := []netip.Addr{}
	if ip, err := netip.ParseAddr(t.host); err == nil {
		ips = append(ips, ip)
	} else if found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", t.host); err == nil {
		ips = found
	}
	for _, ip := range ips {
		if !Public(ip) && !t.allow.permits(t.host, t.port, ip) {
			return &PrivateError{Host: joined(t), IP: ip}
		}
	}
	return nil
}

// targetOf removes the dot at the end of a name; otherwise "localhost." would not match a rule for localhost. If the URL has no
// port, the port of the scheme is used, so that a rule such as wiki.corp:443 matches https://wiki.corp.
func targetOf(u *url.URL, allow Allow) target {
	t := target{strings.TrimSuffix(u.Hostname(), "."), u.Port(), allow}
	if t.port == "" {
		t.port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return t
}

// joined is the target as host:port, with brackets around an IPv6 address.
func joined(t target) string { return net.JoinHostPort(t.host, t.port) }
