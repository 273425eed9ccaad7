package main

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spillway-go/spillway/guard"
	"github.com/spillway-go/spillway/registry"
)

func protection(guarded bool) (func(http.Handler) http.Handler, func(), error) {
	if !guarded {
		return func(next http.Handler) http.Handler { return next }, func() {}, nil
	}
	reg := registry.New()
	for _, name := range upstreams {
		if err := reg.Declare(registry.Key("proxy."+name), registry.Spec{Limit: places, Expand: 1}); err != nil {
			return nil, nil, err
		}
	}
	rt, err := guard.NewRuntime(reg, guard.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, nil, err
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pass, err := rt.For(registry.Key("proxy." + strings.Trim(r.URL.Path, "/"))).EnterScoped(r.Context())
			if err != nil {
				var rej *guard.Rejection
				if errors.As(err, &rej) {
					w.Header().Set("Retry-After", strconv.Itoa(max(1, int(rej.RetryAfter().Seconds()))))
				}
				w.WriteHeader(503)
				return
			}
			defer pass.Exit()
			next.ServeHTTP(w, r.WithContext(pass.Context()))
			pass.Record(nil)
		})
	}, func() { rt.Close() }, nil
}
