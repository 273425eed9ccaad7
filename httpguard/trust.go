package httpguard

import (
	"net/http"
	"net/netip"
	"slices"
)

// TrustNetworks trusts the peers whose address lies in one of the networks, for Config.Trust. It goes by Request.RemoteAddr, the
// other end of the connection: behind a proxy that is the proxy, which must then keep the headers of its own
// clients out. An address that is none, such as that of a Unix socket, is not trusted.
func TrustNetworks(networks ...netip.Prefix) func(*http.Request) bool {
	networks = slices.Clone(networks)
	return func(r *http.Request) bool {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return false
		}
		addr := peer.Addr().Unmap().WithZone("")
		return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(addr) })
	}
}
