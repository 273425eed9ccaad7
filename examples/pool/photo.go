package main

import (
	"image"
	"image/color"
)

// Of a photo, in pixels.
const width, height = 1920, 1280

// brokenPhoto is the number of an upload that makes the decoder panic.
const brokenPhoto = 1

// photo stands for the decoding of an upload.
func photo(number int) *image.RGBA {
	if number == brokenPhoto {
		panic("photo 1 ends in the middle of a line")
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.SetRGBA(x, y, color.RGBA{uint8(x * number), uint8(y + number), uint8(x ^ y), 255})
		}
	}
	return img
}

// shrink averages squares of n x n pixels.
func shrink(img *image.RGBA, n int) *image.RGBA {
	size := img.Bounds().Size()
	small := image.NewRGBA(image.Rect(0, 0, size.X/n, size.Y/n))
	for y := range size.Y / n {
		for x := range size.X / n {
			small.SetRGBA(x, y, mean(img, x*n, y*n, n))
		}
	}
	return small
}

func mean(img *image.RGBA, left, top, n int) color.RGBA {
	var r, g, b int
	for y := top; y < top+n; y++ {
		for x := left; x < left+n; x++ {
			c := img.RGBAAt(x, y)
			r, g, b = r+int(c.R), g+int(c.G), b+int(c.B)
		}
	}
	area := n * n
	return color.RGBA{uint8(r / area), uint8(g / area), uint8(b / area), 255}
}
