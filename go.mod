module github.com/spillway-go/spillway

go 1.26.0

require (
	github.com/petermattis/goid v0.0.0-20261109124353-7cfa343ad0ab
	github.com/rs/zerolog v1.35.1
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	golang.org/x/sys v0.44.0 // indirect
)
