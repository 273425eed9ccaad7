package main

import (
	"context"
	"fmt"
)

func main() {
	rows, err := measureCost(context.Background(), 60)
	for _, r := range rows {
		fmt.Printf("%-30s / %-36s %d  %6.1f %6.1f  %.3f [%.3f %.3f]\n", r.Name, r.Beside, r.Goroutines, r.Ns, r.BesideNs, r.Ratio.Median, r.Ratio.Low, r.Ratio.High)
	}
	fmt.Println(err)
	fmt.Println(allocated())
}
