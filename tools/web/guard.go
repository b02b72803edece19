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

// Allow lists private places that may be fetched from: "localhost:3000", "10.1.2.0/24", "wiki.corp" (any port). A name
// allows whatever private address it resolves to. Public addresses need no rule. A rule that is neither a CIDR range nor a name
// or address matches nothing.
type Allow []string

// PrivateError is returned for an address of this machine, a private network or a cloud's metadata service. A page that
// the model reads could otherwise have it fetch what only this machine can reach, such as a router or a database.
type PrivateError struct {
	Host string     // host:port as in the URL
	IP   netip.Addr // the address that it resolved to
}

// Metadata reports whether the address is one where clouds hand out keys to any process of the machine: link-local
// addresses and the like. Callers do not offer to allow these. The IPv6 forms that carry such an address count as well,
// or a model could write it in one of them.
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

// metadata are the addresses of the metadata services of clouds: link-local of IPv4 and IPv6 (AWS, Google, Azure, most others), AWS over
// IPv6, Alibaba, Oracle, Azure's wire server.
var metadata = prefixes("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32")

func (e *PrivateError) Error() string {
	return fmt.Sprintf("%s is %s, an address of this machine or a private network, which is not fetched from. The user can allow it: \"web\": {\"allow\": [%q]} in pillion.jsonc", e.Host, e.IP, e.Host)
}

// special are non-public ranges that the methods of netip.Addr do not cover, from the IANA special-purpose address registries.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10")

// carriers are IPv6 ranges whose addresses hold an IPv4 address that a gateway would connect to: NAT64 (RFC 6052), 6to4
// (RFC 3056) and IPv4-compatible ones. The number is the byte at which it starts. Without them 64:ff9b::7f00:1 would be a
// public name for this machine.
var carriers = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2, netip.MustParsePrefix("::/96"): 12}

// prefixes parses constants; a mistake in them fails every test.
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

// permits reports whether a private address may be fetched from, given the host and port of the URL. A rule is a CIDR
// range, or a name or address with or without a port. The host is the name in the URL and the port the one that is
// dialled, where the URL has none that of its scheme.
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

// target is the host and port of a URL with the rules that apply. It travels in the request's context to check, where the address is known.
type target struct {
	host, port string
	allow      Allow
}

// targetKey is the key of a request's target in its context.
type targetKey struct{}

// check is the dialer's ControlContext: it judges the address that is about to be connected to, after names were resolved.
// Judging earlier would leave room for DNS rebinding, where a name is public at the first look and private at the second.
// A connection without a target in its context is refused, so that no new code path can go around the guard.
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

// ahead judges a URL before a proxy gets it, as well as can be: the proxy resolves names itself, so only addresses that are
// written out and names that this machine can resolve are judged. A name that cannot be resolved here passes, because
// behind many company proxies none can. It cannot be certain: the proxy may resolve the name to another address.
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

// targetOf drops the dot at the end of a name, which would make "localhost." another name than the rule's. The scheme's
// port stands in where the URL has none, so that a rule such as wiki.corp:443 matches https://wiki.corp.
func targetOf(u *url.URL, allow Allow) target {
	t := target{strings.TrimSuffix(u.Hostname(), "."), u.Port(), allow}
	if t.port == "" {
		t.port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return t
}

// joined is the target as host:port, with brackets around an IPv6 address.
func joined(t target) string { return net.JoinHostPort(t.host, t.port) }
