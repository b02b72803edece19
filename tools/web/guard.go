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
// allows whatever private address it resolves to; everything public is allowed anyway.
type Allow []string

// PrivateError: the address is of this machine, a private network or a cloud's metadata service.
type PrivateError struct {
	Host string
	IP   netip.Addr
}

// Metadata reports whether it is where clouds hand out keys to whoever asks: link-local addresses and their like.
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

var metadata = prefixes("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32")

func (e *PrivateError) Error() string {
	return fmt.Sprintf("%s is %s, an address of this machine or a private network, which is not fetched from. The user can allow it: \"web\": {\"allow\": [%q]} in pillion.jsonc", e.Host, e.IP, e.Host)
}

// special are ranges that netip's own questions do not cover, from the IANA special-purpose registries.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10")

// carriers are ranges that carry an IPv4 address within: a translation gets to that one. The number is where it starts.
var carriers = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2, netip.MustParsePrefix("::/96"): 12}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Public reports whether an address is one of the open internet.
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

// permits reports whether a private address may be fetched from under the name and port it was asked by.
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

// target is what the guard judges: the name of the URL, passed along to where the address is known.
type target struct {
	host, port string
	allow      Allow
}

type targetKey struct{}

// check is the dialer's last word: the address it is about to connect to, after all names were resolved. A name that
// resolves to something else at the second look gains nothing by it.
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

// ahead judges a URL before a proxy gets it: the proxy resolves names itself, so all that can be judged are addresses
// that are written out and names that we can resolve.
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

func targetOf(u *url.URL, allow Allow) target {
	t := target{strings.TrimSuffix(u.Hostname(), "."), u.Port(), allow}
	if t.port == "" {
		t.port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return t
}

func joined(t target) string { return net.JoinHostPort(t.host, t.port) }
