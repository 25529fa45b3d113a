// Line icons on a 24 by 24 grid, drawn for this console. They are decoration: the words beside them carry the meaning.

const PATHS = {
  overview: 'M4 20V13M10 20V5M16 20v-9M21 20H3',
  play: 'M4 5h16v11H9l-5 4zM9 10.5h6',
  models: 'M12 3 4 7.5v9L12 21l8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  key: 'M14.5 9.5a5 5 0 1 1-4-4 5 5 0 0 1 4 4zM13.4 13.2 20 19.8M17 17l2-2',
  usage: 'M5 3h14v18l-3.5-2-3.5 2-3.5-2L5 21zM9 8h6M9 12h6',
  jobs: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7.5V12l3 2.5',
  batches: 'M4 8h11v12H4zM8 8V4h12v12h-5M7.500 12.500h4M7.500 16h4',
  statement: 'M5 4h11l3 3v13H5zM9 10h6M9 14h6M9 17h3',
  members:
    'M9 11.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c.5-3.5 2.8-5.2 6-5.2s5.5 1.7 6 5.200M16 5a3.2 3.2 0 0 1 0 6.300M17.5 15c2 .6 3.2 2.3 3.5 5',
  accounts: 'M4 21V5l8-2v18M12 9h8v12M3 21h18M8 8v.01M8 12v.01M8 16v.01M16 13v.01M16 17v.01',
  catalog: 'M3 12V4h8l10 10-8 8zM7.5 8.500v.01',
  vendors: 'M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4',
  bell: 'M6 17V11a6 6 0 0 1 12 0v6l1.5 1.500H4.500zM10 21h4M12 5V3',
  live: 'M3 12h4l3-7 4 14 3-7h4',
  audit: 'M12 3l8 3v6c0 4.5-3.2 7.5-8 9-4.8-1.5-8-4.5-8-9V6z',
  ledger: 'M12 4v16M7 20h10M4 7h16M4 7l-2 6a3 3 0 0 0 4.5 0zM20 7l-2.5 6a3 3 0 0 0 4.5 0z',
  system: 'M4 4h16v7H4zM4 13h16v7H4zM8 7.500v.01M8 16.500v.01M12 7.500h5M12 16.500h5',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2.500v2M12 19.500v2M2.5 12h2M19.5 12h2M5.3 5.300l1.4 1.400M17.3 17.300l1.4 1.400M5.3 18.700l1.4-1.400M17.3 6.700l1.4-1.4',
  moon: 'M20 14.500A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.500z',
  auto: 'M3 4h18v12H3zM8 20h8M12 16v4',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6 6 18',
  right: 'M9 5l7 7-7 7',
  calendar: 'M4 6h16v14H4zM4 10h16M8 3v5M16 3v5',
  left: 'M15 5l-7 7 7 7',
  down: 'M5 9l7 7 7-7',
  up: 'M5 15l7-7 7 7',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.500l5 5L20 7',
  plus: 'M12 5v14M5 12h14',
  more: 'M5 12v.01M12 12v.01M19 12v.01',
  external: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  refresh: 'M20 11A8 8 0 0 0 5.5 7M4 4v4h4M4 13a8 8 0 0 0 14.5 4M20 20v-4h-4',
  warning: 'M12 4 2.5 20h19zM12 10v4.500M12 17.200v.01',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5.500M12 7.800v.01',
  send: 'M5 12h13M12.5 6l6 6-6 6',
  stop: 'M7 7h10v10H7z',
  trash: 'M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13M10.5 11v5.500M13.5 11v5.5',
  image: 'M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.500v.01',
  video: 'M3 6h12v12H3zM15 11l6-3.500v9L15 13z',
  at: 'M15.5 12a3.5 3.5 0 1 1-7 0 3.5 3.5 0 0 1 7 0zM15.5 8.500V13a2.7 2.7 0 0 0 5.4 0v-1A9 9 0 1 0 17 19.4',
  chart: 'M4 4v16h16M8 15l4-5 3 3 5-7',
  leave: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  user: 'M12 11.500a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.500c.7-4 3.5-6 7.5-6s6.8 2 7.5 6',
  docs: 'M12 6c-2-1.6-5-2-8-2v14c3 0 6 .4 8 2 2-1.6 5-2 8-2V4c-3 0-6 .4-8 2zM12 6v14',
  swap: 'M8 4 4 8l4 4M4 8h13M16 12l4 4-4 4M20 16H7',
  edit: 'M4 20l1-4L16 5l3 3L8 19zM14 7l3 3',
  code: 'M8 7l-5 5 5 5M16 7l5 5-5 5M14 4l-4 16',
  history: 'M4 5v4h4M4.5 9A8.5 8.5 0 1 1 3.5 13M12 8v4.500l3 2',
  sliders:
    'M4 7h9M17 7h3M4 17h3M11 17h9M15 9.500a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM9 19.500a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}

export function Logo({ size = 26 }: { size?: number }) {
  return (
    <svg className="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" className="mark-ground" />
      <path d="M9 25V12.500M9 17.5 25 8.500M23 25v-7" className="mark-gate" />
      <circle cx="9" cy="9" r="2.2" className="mark-lamp" />
    </svg>
  )
}
