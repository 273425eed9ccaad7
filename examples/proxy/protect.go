package main

import (
	"errors"
	"net/http"

	"github.com/rs/zerolog"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/httpguard"
	"github.com/spillway-go/spillway/registry"
)

// protection returns what is put before the mux, and what ends it. A guarded
// proxy has a guard for each route of the mux, that is for each upstream.
func protection(guarded bool) (protect func(http.Handler) http.Handler, end func(), err error) {
	if !guarded {
		return func(next http.Handler) http.Handler { return next }, func() {}, nil
	}
	reg := registry.New()
	for _, name := range upstreams {
		// Expand is 1: six places times five upstreams is what the proxy can do.
		key := httpguard.RouteKey("/" + name + "/")
		if err := reg.Declare(key, registry.Spec{Limit: places, Expand: 1}); err != nil {
			return nil, nil, err
		}
	}
	rt, err := guard.NewRuntime(reg, guard.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, nil, err
	}
	mw, err := httpguard.New(httpguard.Config{Runtime: rt})
	if err != nil {
		return nil, nil, errors.Join(err, rt.Close())
	}
	return mw.Handler, func() { _ = rt.Close() }, nil
}
