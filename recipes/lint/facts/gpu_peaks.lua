-- SPDX-License-Identifier: MIT
-- Dense TFLOP/s in 16 bits of a device, looked for in this order in its name; experiments/gpu_peaks.def has all types.
return {
	{ "GB300", 2500 }, { "GB200", 2500 }, { "B300", 2250 }, { "B200", 2250 }, { "GH200", 989 }, { "H200 NVL", 835 },
	{ "H200", 989 }, { "H20", 148 }, { "H800", 989 }, { "H100 NVL", 835 }, { "H100 PCIe", 756 }, { "H100", 989 },
	{ "A100", 312 }, { "A800", 312 }, { "V100S", 130 }, { "V100", 125 }, { "L40S", 362 }, { "L40", 181 }, { "L4", 121 },
	{ "A40", 149.7 }, { "A10G", 70 }, { "A10", 125 }, { "A6000", 154.85 }, { "T4", 65 }, { "MI355X", 2500 },
	{ "MI325X", 1307.4 }, { "MI300X", 1307.4 }, { "MI250X", 191.5 }, { "MI250", 181 },
}
