# SPDX-License-Identifier: Apache-2.0
"""Power, energy and clocks of a GPU from the driver's NVML, by ctypes: one less package to install."""

import ctypes
import sys
import threading
import time

_SM_CLOCK, _MEMORY_CLOCK = 1, 2


class Sensors:
    """None of the readings raises: what the GPU does not report is None."""

    def __init__(self, uuid=None):
        self._device = ctypes.c_void_p()
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._check(self._nvml.nvmlInit_v2())
        if uuid is None or self._nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._device)) != 0:
            self._check(self._nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device)))

    @staticmethod
    def _check(status):
        if status != 0:
            raise OSError(f"NVML error {status}")

    def _read(self, name, kind, *arguments):
        value = kind()
        status = getattr(self._nvml, name)(self._device, *arguments, ctypes.byref(value))
        return value.value if status == 0 else None

    def driver(self):
        version = ctypes.create_string_buffer(80)
        status = self._nvml.nvmlSystemGetDriverVersion(version, len(version))
        return version.value.decode() if status == 0 else None

    def watts(self):
        milliwatts = self._read("nvmlDeviceGetPowerUsage", ctypes.c_uint)
        return None if milliwatts is None else milliwatts / 1e3

    def joules(self):
        """Since the driver was loaded."""
        millijoules = self._read("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)
        return None if millijoules is None else millijoules / 1e3

    def reading(self):
        return {
            "sm_clock_mhz": self._read("nvmlDeviceGetClockInfo", ctypes.c_uint, _SM_CLOCK),
            "memory_clock_mhz": self._read("nvmlDeviceGetClockInfo", ctypes.c_uint, _MEMORY_CLOCK),
            "power_watts": self.watts(),
        }


def sensors_of(torch):
    """Of torch's first GPU; None, and a line on standard error, where NVML does not answer."""
    try:
        return Sensors(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    except (OSError, AttributeError) as error:
        print(f"study: no power and clock readings: {error}", file=sys.stderr)
        return None


class PowerLog:
    """Samples of (seconds since the start, watts) in a thread of its own, inside a `with`."""

    def __init__(self, sensors, interval_s=0.02):
        self._sensors, self._interval = sensors, interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.samples = []

    def _sample(self):
        started = time.monotonic()
        while not self._stop.wait(self._interval):
            watts = self._sensors.watts()
            if watts is not None:
                self.samples.append((round(time.monotonic() - started, 4), watts))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._stop.set()
        self._thread.join()
