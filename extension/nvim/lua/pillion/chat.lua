-- The windows of the chat: the conversation and, below it, the input.
local compat = require("pillion.compat")
local config = require("pillion.config")
local paths = require("pillion.paths")
local sessions = require("pillion.session")

local M = {}

local function share(n, whole)
  return math.max(20, n < 1 and math.floor(whole * n) or n)
end

---@param session? pillion.Session
---@return pillion.ChatBuffer
local function view(session)
  session = session or sessions.get()
  return session.view or require("pillion.chat_buffer").new(session)
end
M.view = view

local options = {
  wrap = true,
  linebreak = true,
  breakindent = true,
  number = false,
  relativenumber = false,
  signcolumn = "no",
  foldcolumn = "0",
  foldmethod = "manual",
  foldenable = true,
  foldtext = "v:lua.require'pillion.chat'.foldtext()",
  fillchars = "fold: ,eob: ",
  winfixwidth = true,
  spell = false,
  list = false,
  cursorline = false,
  conceallevel = 0, -- tool calls show code, in which nothing may be concealed
  winhighlight = "Folded:PillionFolded",
}

-- What a closed fold shows: its first line and how many lines it hides.
---@return string
function M.foldtext()
  local first, last = vim.v.foldstart, vim.v.foldend
  local line = vim.fn.getline(first)
  return ("%s  %s %d line%s"):format(line, config.options.chat.icons.fold, last - first, last - first == 1 and "" or "s")
end

-- Sets the options of a window that shows a conversation, however the buffer came into it.
---@param win integer
---@param v pillion.ChatBuffer
function M.dress(win, v)
  for name, value in pairs(options) do
    compat.win_option(win, name, value)
  end
  if compat.has("0.8") then
    compat.win_option(win, "statusline", " Pillion%=i type · <Tab> fold · q close ")
    compat.win_option(win, "winbar", "%{%v:lua.require'pillion.status'.winbar(" .. v.buf .. ")%}")
  else
    compat.win_option(win, "statusline", "%{v:lua.require'pillion.status'.plain(" .. v.buf .. ")}")
  end
  v:fold_all(win)
end

local function keys(v)
  local function map(lhs, f, desc)
    vim.keymap.set("n", lhs, f, { buffer = v.buf, silent = true, desc = "Pillion: " .. desc })
  end
  local function entry()
    return v:entry_at(vim.api.nvim_win_get_cursor(0)[1])
  end
  for _, lhs in ipairs({ "i", "a", "o", "A", "I", "O" }) do
    map(lhs, function()
      M.focus_input(v)
    end, "type a prompt")
  end
  map("q", function()
    M.close()
  end, "close the chat")
  map("<C-c>", function()
    v.session:cancel()
  end, "stop the turn")
  map("<Tab>", "za", "open or close a fold")
  map("<CR>", function()
    local e = entry()
    if e and e.ask and e.ask.state == "open" then
      if e.ask.review then
        return require("pillion.commands").run({ fargs = { "review" }, args = "review", range = 0, line1 = 0, line2 = 0 })
      end
      return require("pillion.approval").pick(e.ask)
    end
    M.visit(v, e)
  end, "answer, or go to the file")
  map("gf", function()
    M.visit(v, entry())
  end, "go to the file")
  for n = 1, 9 do
    vim.keymap.set("n", tostring(n), function()
      local e = entry()
      local option = e and e.ask and e.ask.state == "open" and vim.v.count == 0 and e.ask.options[n]
      if option then
        local ask = e.ask
        vim.schedule(function()
          require("pillion.approval").by_key(ask, option)
        end)
        return ""
      end
      return tostring(n)
    end, { buffer = v.buf, expr = true, desc = "Pillion: answer a question with option " .. n })
  end
  local function prompt(direction)
    return function()
      vim.fn.search("^" .. vim.fn.escape(config.options.chat.icons.user, "\\^$.*[]~") .. " ", direction < 0 and "bW" or "W")
    end
  end
  map("]]", prompt(1), "next prompt")
  map("[[", prompt(-1), "previous prompt")
end

-- Opens the file that an entry is about.
---@param v pillion.ChatBuffer
---@param e? pillion.Entry
---@return pillion.ChatBuffer?
function M.visit(v, e)
  local place = e and e.call and (e.call.locations or {})[1]
  if not place then
    return
  end
  if not paths.exists(place.path) then
    return require("pillion.log").tell("warn", paths.short(place.path) .. " does not exist")
  end
  local win = paths.editor_window(true)
  if not win then
    vim.cmd("topleft vsplit")
    win = vim.api.nvim_get_current_win()
  end
  vim.api.nvim_win_set_buf(win, paths.load(place.path))
  vim.api.nvim_set_current_win(win)
  pcall(vim.api.nvim_win_set_cursor, win, { place.line or 1, 0 })
  vim.cmd("normal! zv")
  return v
end

-- Returns the chat's window in this tab page, whichever session it shows.
---@return integer?
function M.window()
  local by_buf = require("pillion.chat_buffer").by_buf
  for _, w in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if by_buf[vim.api.nvim_win_get_buf(w)] then
      return w
    end
  end
end

local function split(position)
  local o = config.options.chat
  if position == "tab" then
    vim.cmd("tabnew")
  elseif position == "bottom" or position == "top" then
    vim.cmd((position == "bottom" and "botright " or "topleft ") .. math.max(8, share(o.height, vim.o.lines)) .. "split")
  else
    vim.cmd((position == "right" and "botright " or "topleft ") .. share(o.width, vim.o.columns) .. "vsplit")
  end
end

-- Resizes the chat with the screen, so that it keeps its share.
local function follow_size()
  vim.api.nvim_create_autocmd("VimResized", {
    group = vim.api.nvim_create_augroup("pillion_chat", { clear = true }),
    callback = function()
      local win, o = M.window(), config.options.chat
      if not win or o.position == "tab" then
        return
      elseif o.position == "bottom" or o.position == "top" then
        vim.api.nvim_win_set_height(win, math.max(8, share(o.height, vim.o.lines)))
      else
        vim.api.nvim_win_set_width(win, share(o.width, vim.o.columns))
      end
    end,
  })
end

-- Shows the chat; moves the cursor to the input only if asked to.
---@param focus? boolean
---@param session? pillion.Session
---@return pillion.ChatBuffer
function M.open(focus, session)
  local v = view(session)
  sessions.current = v.session
  local back = vim.api.nvim_get_current_win()
  local win = M.window()
  if not win then
    split(config.options.chat.position)
    follow_size()
    win = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(win, v.buf)
    M.dress(win, v)
    keys(v)
    require("pillion.chat_input").open(v, win)
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(v.buf), 0 })
  elseif vim.api.nvim_win_get_buf(win) ~= v.buf then
    vim.api.nvim_win_set_buf(win, v.buf)
    M.dress(win, v)
    keys(v)
    require("pillion.chat_input").open(v, win)
  end
  if focus then
    M.focus_input(v)
  elseif vim.api.nvim_win_is_valid(back) then
    vim.api.nvim_set_current_win(back)
  end
  return v
end

-- Moves the cursor into the input of a chat, and opens the input if there is room.
---@param v pillion.ChatBuffer
function M.focus_input(v)
  local win = require("pillion.chat_input").window(v)
  if not win then
    local chat = M.window()
    if not chat then
      return
    end
    require("pillion.chat_input").open(v, chat)
    win = require("pillion.chat_input").window(v)
    if not win then
      return -- no room; the person was told
    end
  end
  vim.api.nvim_set_current_win(win)
  vim.cmd("startinsert!")
end

-- Hides the chat; the turn continues.
function M.close()
  local win = M.window()
  local input = require("pillion.chat_input")
  for _, w in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.b[vim.api.nvim_win_get_buf(w)].pillion_input_of then
      input.close(w)
    end
  end
  if win and vim.api.nvim_win_is_valid(win) then
    if #vim.api.nvim_tabpage_list_wins(0) == 1 and #vim.api.nvim_list_tabpages() == 1 then
      vim.api.nvim_win_set_buf(win, vim.api.nvim_create_buf(true, false))
    else
      vim.api.nvim_win_close(win, true)
    end
  end
  vim.cmd("stopinsert")
end

-- Opens the chat to type, or closes it.
function M.toggle()
  if M.window() then
    M.close()
  else
    M.open(true)
  end
end

-- Sends a prompt to the current session and shows the chat beside the current window.
---@param words string
---@param extra? pillion.Context[]
---@param how? "prompt"|"queue"|"steer"
function M.prompt(words, extra, how)
  local v = M.open(false)
  M.send(v.session, words, extra, how)
end

---@param session pillion.Session
---@param words string
---@param extra? pillion.Context[]
---@param how? "prompt"|"queue"|"steer"
function M.send(session, words, extra, how)
  local process = require("pillion.process")
  local attached = session.attached
  if extra then
    attached = vim.list_extend(vim.deepcopy(attached), extra)
  end
  local blocks, shown = require("pillion.context").blocks(words, attached, session.cwd)
  session.attached = {}
  session:status()
  local log = require("pillion.log")
  if how == "steer" and session:busy() then
    local entry = session:add({ kind = "user", text = shown .. "\n(to the turn that runs)", closed = true, steered = true })
    return session:call("_session/steering", { prompt = blocks }, function(err, r)
      if err or r.outcome == "promptRequired" then
        session:remove(entry)
        if err then
          session:note("warning", err.message .. " It is sent as a prompt instead.")
        end
        return session:prompt(blocks, shown)
      end
    end)
  elseif how == "queue" and session:busy() and process.can("_pillion/session/queue") then
    return session:call("_pillion/session/queue", { add = blocks }, function(err)
      if err then
        return log.tell("error", err.message)
      end
    end)
  end
  session:prompt(blocks, shown)
end

return M
