"""Which language a page speaks, and the catalogs of its texts: `dashboard/locale` holds what people translate."""
